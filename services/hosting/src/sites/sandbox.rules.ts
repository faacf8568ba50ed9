import type { Site } from './site.types';

/**
 * The behaviour that a sandbox site's name asks for, an error or slowness, so that a client can test its own paths
 * (decisions.md 5). A live site's name asks for nothing.
 */
export function sandboxBehaviour(
  { mode, name }: Pick<Site, 'mode' | 'name'>,
  failure: 'fail_restore',
): { fails: boolean; slows: boolean } {
  const isSandbox = mode === 'sandbox';
  return { fails: isSandbox && name.includes(failure), slows: isSandbox && name.includes('slow') };
}
