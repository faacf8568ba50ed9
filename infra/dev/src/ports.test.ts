import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { openPortBook } from './data-folder';

test('a port is kept over starts, and given up only to a stranger who listens on it', async () => {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-ports-'));
  const said: string[] = [];
  const settle = (): Promise<number> => openPortBook(dataDir, (line) => said.push(line)).settle('keys');
  const port = await settle();
  expect(await settle()).toBe(port);
  const stranger = net.createServer();
  await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve));
  expect(await settle()).not.toBe(port);
  expect(said).toHaveLength(1);
  await expect(openPortBook(dataDir, () => undefined).insist('gateway', port)).rejects.toThrow('DRYDOCK_PORT');
  stranger.close();
  fs.rmSync(dataDir, { recursive: true, force: true });
});
