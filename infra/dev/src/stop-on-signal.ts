/** How often the parent process is checked. */
const parentCheckMs = 500;

/**
 * Calls `stop` once, at Ctrl-C, SIGTERM, a closed terminal or the death of the parent, whichever comes first. The
 * parent is checked regularly, because a killed npm passes no signal on. Exits with 0 afterwards, or with 1 if `stop`
 * failed.
 */
export function stopOnSignal(stop: () => Promise<void>): { isStopping: () => boolean } {
  let stopping = false;
  const begin = (): void => {
    if (stopping) return;
    stopping = true;
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, begin);
  process.on('disconnect', begin);
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) begin();
  }, parentCheckMs).unref();
  // a closed terminal makes writes fail, which must not end this process before everything is stopped
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return { isStopping: () => stopping };
}
