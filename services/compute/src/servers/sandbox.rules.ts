import type { Server } from './server.types';

/** A sandbox server's name asks for an error or for slowness, so that a client can test its own paths (decisions.md 5). Never a live one's. */
export function sandboxBehaviour({ mode, name }: Pick<Server, 'mode' | 'name'>): { failsRollback: boolean; isSlow: boolean } {
  const isSandbox = mode === 'sandbox';
  return { failsRollback: isSandbox && name.includes('fail_rollback'), isSlow: isSandbox && name.includes('slow') };
}
