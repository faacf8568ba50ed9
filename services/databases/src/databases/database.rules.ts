import type { Mode } from '@drydock/contracts/platform/values';
import type { Refusal } from '@drydock/workflow/definition';
import type { ManagedDatabase } from './database.types';

/**
 * The behaviour that a sandbox database's label asks for, so that clients can test their own handling of errors; see
 * docs/spec/decisions.md, section 5. The label of a live database asks for nothing.
 */
export const sandboxBehaviour = ({ mode, label }: { mode: Mode; label: string }) => ({
  failsUpgrade: mode === 'sandbox' && label.includes('fail_upgrade'),
  failsRestore: mode === 'sandbox' && label.includes('fail_restore'),
  isSlow: mode === 'sandbox' && label.includes('slow'),
});

const form = /^\d+(?:\.\d+)*$/;

/** Whether the text is a version such as `16` or `8.4`: ASCII digits and dots, at most 32 characters. */
export const isVersion = (text: string): boolean => form.test(text) && text.length <= 32;

/**
 * Negative if `a` is older than `b`, positive if `a` is newer. The parts are compared as integers of any size, and a
 * missing part counts as 0. Both texts must be versions.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(BigInt));
  for (let part = 0; part < Math.max(left?.length ?? 0, right?.length ?? 0); part += 1) {
    const [mine, other] = [left?.[part] ?? 0n, right?.[part] ?? 0n];
    if (mine !== other) return mine < other ? -1 : 1;
  }
  return 0;
}

export const refuseUnavailable = ({ status }: Pick<ManagedDatabase, 'status'>): Refusal | null =>
  status === 'available' ? null : { code: 'database_not_available' };
