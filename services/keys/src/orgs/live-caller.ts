import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';

/** Refuses a sandbox key. There is only one tree of organisations, and a sandbox key may neither see nor change it. */
export function assertLiveCaller({ mode }: Caller): void {
  if (mode === 'sandbox')
    throw problem('sandbox_key', { detail: 'Organisations are managed by live keys. Use a live key.' });
}
