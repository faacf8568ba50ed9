import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openPortBook } from './data-folder';

/**
 * The ports on which other programs seem to listen. The mock replaces the real check, because other suites listen on
 * ports of the same range.
 */
const mockStrangers = new Set<number>();
jest.mock('@drydock/process', () => ({
  ...jest.requireActual<typeof import('@drydock/process')>('@drydock/process'),
  isPortFree: async (port: number) => !mockStrangers.has(port),
}));

test('a port is kept over starts, and given up only to a stranger who listens on it', async () => {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-ports-'));
  const said: string[] = [];
  const chooseAgain = async (): Promise<number> => {
    const book = await openPortBook(dataDir, (line) => said.push(line));
    const port = await book.choose('keys');
    await book.close();
    return port;
  };
  const port = await chooseAgain();
  expect(await chooseAgain()).toBe(port);
  mockStrangers.add(port);
  expect(await chooseAgain()).not.toBe(port);
  expect(said).toHaveLength(1);
  const book = await openPortBook(dataDir, () => undefined);
  await expect(book.insist('gateway', port)).rejects.toThrow('DRYDOCK_PORT');
  await book.close();
  fs.rmSync(dataDir, { recursive: true, force: true });
});

test('thirty supervisors that choose at once, before any of their processes listens, never choose the same port', async () => {
  const folders = Array.from({ length: 30 }, () => fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-ports-')));
  const books = await Promise.all(folders.map((folder) => openPortBook(folder, () => undefined)));
  const names = Array.from({ length: 20 }, (_, index) => `process-${index}`);
  const chosen = await Promise.all(
    books.map(async (book) => {
      const ports: number[] = [];
      for (const name of names) ports.push(await book.choose(name));
      return ports;
    }),
  );
  expect(new Set(chosen.flat()).size).toBe(books.length * names.length);
  for (const book of books) await book.close();
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
});
