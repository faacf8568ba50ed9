import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findRedis, startRedis } from '@drydock/process';

export interface TestRedis {
  url: string;
  /** The server's pid, for SIGSTOP and SIGKILL. The pid changes with `restart`. */
  readonly pid: number;
  /** Starts a killed server again, empty, at the same address. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a Redis or Valkey that the test may flush, freeze or kill. Resolves with null if neither is on the PATH. */
export async function testRedis(): Promise<TestRedis | null> {
  if (findRedis() === null) return null;
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-test-redis-'));
  let server = await startRedis({ folder, isEphemeral: true });
  const { url, port } = server;
  return {
    url,
    get pid() {
      return server.proof.pid;
    },
    restart: async () => {
      server = await startRedis({ folder, port, isEphemeral: true });
    },
    close: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
