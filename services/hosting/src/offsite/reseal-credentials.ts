import type { CurrentFirst } from '@drydock/service/process/secrets';
import type { Log } from '@drydock/service/telemetry/log';
import type { HostingDatabase } from '../database.store';
import { listSealed, replaceCredentials } from './destination.store';
import { isSealedWith, openCredentials, sealCredentials } from './offsite-credentials';

const rowsMax = 500;

/**
 * Seals credentials again that another key than the current one has sealed, so that the other key can be removed. It
 * runs once at the start of a process, and only while the secret is rotated. Two processes may run it at once: a row is
 * replaced only if it is as it was read.
 */
export function createResealing(database: HostingDatabase, keys: CurrentFirst<Buffer>, log: Log) {
  let running: Promise<void> = Promise.resolve();
  let stopping = false;
  const reseal = async (): Promise<void> => {
    const [current] = keys;
    let resealed = 0;
    for (let after = '00000000-0000-0000-0000-000000000000'; !stopping; ) {
      const rows = await listSealed(database.pool, after, rowsMax);
      for (const { id, sealed, ...place } of rows) {
        if (isSealedWith(current, place, sealed)) continue;
        const renewed = sealCredentials(current, place, openCredentials(keys, place, sealed));
        resealed += await replaceCredentials(database.pool, id, { sealed, renewed });
      }
      const last = rows.at(-1);
      if (last === undefined) {
        log.info({ resealed }, 'every credential of a storage is sealed with the current secret');
        return;
      }
      after = last.id;
    }
  };
  return {
    start: () => {
      if (keys.length === 1) return;
      running = reseal().catch((error: unknown) =>
        log.error({ err: error }, 'credentials could not be sealed anew; tried again at the next start'),
      );
    },
    stop: async () => {
      stopping = true;
      await running;
    },
  };
}
