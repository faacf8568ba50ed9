import path from 'node:path';
import { listFiles, readText } from './source-files';

const originals = new Map(listFiles('packages/*/prisma/*.prisma').map((file) => [path.basename(file), readText(file)]));
const copies = listFiles('services/*/prisma/schema/*.prisma').filter((file) => originals.has(path.basename(file)));

describe('Prisma fragments of the packages', () => {
  it('are copied unchanged into the schemas of the services', () => {
    expect(originals.size).toBeGreaterThan(0);
    expect(copies.length).toBeGreaterThan(0);
    expect(copies.filter((file) => readText(file) !== originals.get(path.basename(file)))).toEqual([]);
  });
});
