/** The pause between two checks of whether the parent process lives. */
const parentCheckMs = 500;

/**
 * Calls `stop` once: at Ctrl-C, at SIGTERM, when the terminal is closed, or when the parent dies. Then exits with 0, or
 * with 1 if `stop` failed. The parent is checked regularly, because a killed npm passes no signal on.
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
  // Writes fail after the terminal was closed. Such an error must not end this process before everything has stopped.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return { isStopping: () => stopping };
}
