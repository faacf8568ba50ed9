import type { BackupStorage } from './backup-storage';

/**
 * Keeps sandbox backups in a place of their own, so that a client's tests never touch live ones. The mode is the first
 * part of every key.
 */
export function storageByMode({ live, sandbox }: { live: BackupStorage; sandbox: BackupStorage }): BackupStorage {
  const of = (mode: string): BackupStorage => (mode === 'sandbox' ? sandbox : live);
  const ofKey = (key: string): BackupStorage => of(key.split('/', 1)[0] ?? '');
  return {
    locationIn: (mode) => of(mode).locationIn(mode),
    placeIn: (mode) => of(mode).placeIn(mode),
    sink: (key) => ofKey(key).sink(key),
    source: (key) => ofKey(key).source(key),
    has: (key) => ofKey(key).has(key),
    listFinished: (prefix) => ofKey(prefix).listFinished(prefix),
    removeAll: (prefix, keep) => ofKey(prefix).removeAll(prefix, keep),
    lock: (key, until) => ofKey(key).lock(key, until),
    canary: (mode) => of(mode).canary(mode),
  };
}
