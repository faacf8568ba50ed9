import type { Server } from './server.types';

/** The behaviour that a sandbox server's name asks for. */
interface SandboxBehaviour {
  failsRollback: boolean;
  failsPower: boolean;
  failsDeletion: boolean;
  isSlow: boolean;
}

/** Errors or slowness on demand, so that a client can test its own paths (decisions.md 5). Never for a live server. */
export function sandboxBehaviour({ mode, name }: Pick<Server, 'mode' | 'name'>): SandboxBehaviour {
  const asksFor = (word: string): boolean => mode === 'sandbox' && name.includes(word);
  return {
    failsRollback: asksFor('fail_rollback'),
    failsPower: asksFor('fail_power'),
    failsDeletion: asksFor('fail_delete'),
    isSlow: asksFor('slow'),
  };
}
