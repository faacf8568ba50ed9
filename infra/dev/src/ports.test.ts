import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openPortBook } from './data-folder';

/** Those on which a stranger of this test listens. The other suites of the run take ports of the same range, which must not count here. */
const mockStrangers = new Set<number>();
jest.mock('@drydock/process/free-port', () => ({ isPortFree: async (port: number) => !mockStrangers.has(port) }));

test('a port is kept over starts, and given up only to a stranger who listens on it', async () => {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-ports-'));
  const said: string[] = [];
  const settle = (): Promise<number> => openPortBook(dataDir, (line) => said.push(line)).settle('keys');
  const port = await settle();
  expect(await settle()).toBe(port);
  mockStrangers.add(port);
  expect(await settle()).not.toBe(port);
  expect(said).toHaveLength(1);
  await expect(openPortBook(dataDir, () => undefined).insist('gateway', port)).rejects.toThrow('DRYDOCK_PORT');
  fs.rmSync(dataDir, { recursive: true, force: true });
});
