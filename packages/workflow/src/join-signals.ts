export interface JoinedSignal {
  /** Aborted by whichever source is first, with its reason. */
  signal: AbortSignal;
  /** The sources are forgotten. Call it at the end, or they keep this one for as long as they live. */
  part(): void;
}

/**
 * One signal for several. Not `AbortSignal.any`: Node 20 keeps what that makes for ever once somebody has listened to it, 2 kB for each step that a worker has ever run,
 * unless one of its sources is aborted at last.
 */
export function joinSignals(sources: readonly AbortSignal[]): JoinedSignal {
  const joined = new AbortController();
  const forward = (): void => joined.abort(sources.find((source) => source.aborted)?.reason);
  for (const source of sources) source.addEventListener('abort', forward, { once: true });
  if (sources.some((source) => source.aborted)) forward();
  return {
    signal: joined.signal,
    part: () => {
      for (const source of sources) source.removeEventListener('abort', forward);
    },
  };
}
