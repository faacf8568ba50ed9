import type { Mode } from '@drydock/contracts/platform/values';

/**
 * The behaviour that a sandbox database's label asks for (decisions.md 5), so that a client can try its own error
 * paths. The label of a live database asks for nothing.
 */
export const sandboxBehaviour = ({ mode, label }: { mode: Mode; label: string }) => ({
  failsUpgrade: mode === 'sandbox' && label.includes('fail_upgrade'),
  failsRestore: mode === 'sandbox' && label.includes('fail_restore'),
  isSlow: mode === 'sandbox' && label.includes('slow'),
});
