import type { Site } from './site.types';

/** A sandbox site's name asks for an error or for slowness, so that a client can test its own paths (decisions.md 5). Never a live one's. */
export function sandboxBehaviour({ mode, name }: Pick<Site, 'mode' | 'name'>, failure: 'fail_restore'): { fails: boolean; slows: boolean } {
  const isSandbox = mode === 'sandbox';
  return { fails: isSandbox && name.includes(failure), slows: isSandbox && name.includes('slow') };
}
