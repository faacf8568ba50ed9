/** How often to check whether the process that started this one still runs. */
const parentCheckMs = 500;

/**
 * Calls `stop` once, at the first of: Ctrl-C, SIGTERM, a closed terminal, the death of the process that started this
 * one (an npm that is killed cannot pass a signal on). Then exits with 0, or with 1 when stopping failed.
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
  // once the terminal is gone, writing to it must not end this process before everything is stopped
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  return { isStopping: () => stopping };
}
