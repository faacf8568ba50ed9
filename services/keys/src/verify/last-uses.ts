import type { Sql } from '@drydock/service/database';
import type { Log } from '@drydock/service/telemetry';
import { type KeyUse, noteUses } from './verify.store';

export interface LastUses {
  /** Remembers a use without a query. */
  note(keyId: string, use: KeyUse): void;
  start(): void;
  /** Writes what is left. */
  stop(): Promise<void>;
}

/**
 * Collects the last use of each key and writes them together, outside any request. A lost write is not worth a wait.
 */
export function createLastUses(sql: Sql, log: Log, everyMs = 2_000): LastUses {
  let uses = new Map<string, KeyUse>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    if (uses.size === 0) return;
    const batch = uses;
    uses = new Map();
    await noteUses(sql, batch).catch((error: unknown) =>
      log.warn({ err: error, keys: batch.size }, 'last uses could not be noted'),
    );
  };
  const turn = async (): Promise<void> => {
    writing = write();
    await writing;
    timer?.refresh();
  };
  return {
    note: (keyId, use) => void uses.set(keyId, use),
    start: () => {
      timer = setTimeout(() => void turn(), everyMs).unref();
    },
    stop: async () => {
      clearTimeout(timer);
      timer = undefined;
      await writing;
      await write();
    },
  };
}
