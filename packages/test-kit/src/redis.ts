import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findRedis, startRedis } from '@drydock/embedded/redis';

export interface TestRedis {
  url: string;
  /** For SIGSTOP and SIGKILL. */
  pid: number;
  close(): Promise<void>;
}

/** A Redis or Valkey of the test's own, which it may flush, freeze or kill; null when none is on the PATH. */
export async function testRedis(): Promise<TestRedis | null> {
  if (findRedis() === null) return null;
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-test-redis-'));
  const server = await startRedis({ folder, isEphemeral: true });
  const close = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: server.url, pid: server.proof.pid, close };
}
