import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createS3Emulator, type S3Emulator, type S3Options } from './s3-emulator';

export interface RunningS3 extends S3Emulator {
  /** The URL: http://127.0.0.1:<port>. */
  endpoint: string;
  /** Returns the file with the content of an object's newest version. Tests use it to corrupt an object. */
  fileOf(bucket: string, key: string): string;
  close(): Promise<void>;
}

/** Starts the emulator in this process. Its folder is removed at the end, unless the caller provided it. */
export async function startS3(
  options: Omit<S3Options, 'stateDir' | 'adminToken' | 'region' | 'clockScale' | 'lockAnswer'> & Partial<S3Options>,
): Promise<RunningS3> {
  const stateDir = options.stateDir ?? mkdtempSync(path.join(tmpdir(), 'drydock-s3-'));
  const emulator = createS3Emulator({
    adminToken: 'admin',
    region: 'us-east-1',
    clockScale: 1,
    lockAnswer: 'access_denied',
    ...options,
    stateDir,
  });
  emulator.server.listen(0, '127.0.0.1');
  await once(emulator.server, 'listening');
  const address = emulator.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return {
    ...emulator,
    endpoint: `http://127.0.0.1:${address.port}`,
    fileOf: (bucket, key) => {
      const store = emulator.world.buckets.get(bucket);
      const [piece] = store.versionsOf(key)[0]?.pieces ?? [];
      if (piece === undefined) throw new Error(`nothing was written as ${key}`);
      return store.fileOf(piece);
    },
    close: async () => {
      emulator.server.close();
      emulator.server.closeAllConnections();
      await once(emulator.server, 'close');
      if (options.stateDir === undefined) rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
