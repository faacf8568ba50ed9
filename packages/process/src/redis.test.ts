/** @processes */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isSameProcess } from './end-process';
import { pingRedis, type RedisServer, startRedis } from './redis';
import { missingTools } from './testing/needs';

const lacking = missingTools('redis');

(lacking === '' ? describe : describe.skip)(`a private Redis${lacking}`, () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-redis-'));
  let server: RedisServer | undefined;

  afterAll(async () => {
    await server?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  test('requires its password, which is not on its command line', async () => {
    server = await startRedis({ folder });
    const password = new URL(server.url).password;
    expect(await pingRedis(server.port, 'wrong')).toBe(false);
    expect(await pingRedis(server.port, password)).toBe(true);
    expect(fs.readFileSync(`/proc/${server.proof.pid}/cmdline`, 'utf8')).not.toContain(password);
  });

  test('accepts each of the given passwords and no other', async () => {
    const passwords = ['a'.repeat(32), 'b'.repeat(32)];
    const given = await startRedis({ folder: path.join(folder, 'given'), passwords });
    const answers = (): Promise<boolean[]> =>
      Promise.all([...passwords, 'wrong'].map((password) => pingRedis(given.port, password)));
    try {
      expect(new URL(given.url).password).toBe(passwords[0]);
      expect(await answers()).toEqual([true, true, false]);
    } finally {
      await given.stop();
    }
  });

  test('reports a taken port in the words that startOnFreePort recognises', async () => {
    const other = path.join(folder, 'other');
    await expect(startRedis({ folder: other, port: server?.port ?? 0 })).rejects.toThrow(/address already in use/i);
  });

  test('a leftover on the same folder is ended', async () => {
    const earlier = server;
    server = await startRedis({ folder });
    expect(earlier === undefined || isSameProcess(earlier.proof)).toBe(false);
  });
});
