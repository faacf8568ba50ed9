import path from 'node:path';
import { timeCommand } from './measure';

interface ObjectStorage {
  endpoint: string;
  bucket: string;
  access_key_id: string;
  secret_access_key: string;
}

/** A restic repository in S3 storage, with its cache below `folder`. */
export class Restic {
  private readonly environment: Record<string, string>;

  constructor(storage: ObjectStorage, folder: string) {
    this.environment = {
      RESTIC_PASSWORD: 'bench',
      RESTIC_REPOSITORY: `s3:${storage.endpoint}/${storage.bucket}/restic`,
      RESTIC_CACHE_DIR: path.join(folder, 'restic-cache'),
      AWS_ACCESS_KEY_ID: storage.access_key_id,
      AWS_SECRET_ACCESS_KEY: storage.secret_access_key,
    };
  }

  /** Runs a command of restic. Resolves with the seconds that it took. */
  async run(args: readonly string[], cwd?: string): Promise<number> {
    const { environment: env } = this;
    return (await timeCommand({ bin: 'restic', args: ['-q', ...args], env, ...(cwd === undefined ? {} : { cwd }) }))
      .seconds;
  }

  /** Restores into `target` and syncs the files to the disk. Resolves with the seconds of both. */
  async restore(command: readonly string[], target: string): Promise<number> {
    const restored = await this.run([...command, '--target', target]);
    return restored + (await timeCommand({ bin: 'sync', args: ['-f', target] })).seconds;
  }
}
