import type { Writable } from 'node:stream';

/**
 * How long lines are collected before they are written, because a system call for each line would cost a tenth of a
 * request. A crash loses at most the log of this time.
 */
const flushMs = 50;
const flushCharacters = 32_768;
/**
 * Limit for characters that wait for a reader, which is about 20,000 lines. A reader that has stopped must neither stop
 * the process nor fill its memory.
 */
const waitingMax = 8_000_000;

export interface LogOutput {
  /** Takes a line that ends in a newline. Never waits and never throws. */
  write(line: string): void;
  /** Writes the held lines; so does the end of the process. */
  flush(): void;
}

let standard: LogOutput | undefined;

/** The process's log output, to standard output. `service` is in the line that reports dropped lines. */
export const standardLogOutput = (service: string): LogOutput => {
  standard ??= createLogOutput(service, process.stdout);
  return standard;
};

/**
 * Collects lines and writes them together, without waiting for their reader. If too much waits, lines are dropped; the
 * first line after that reports their number.
 */
function createLogOutput(service: string, stream: Writable): LogOutput {
  let held = '';
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (held === '') return;
    const text = held;
    held = '';
    stream.write(text);
  };
  const hold = (line: string): void => {
    held += line;
    if (held.length >= flushCharacters) flush();
    else timer ??= setTimeout(flush, flushMs);
  };
  // The reader has gone, which is no reason to end.
  stream.on('error', () => undefined);
  process.once('exit', flush);
  return {
    write: (line) => {
      if (stream.writableLength + held.length > waitingMax) {
        dropped += 1;
        return;
      }
      if (dropped > 0) {
        const lost = {
          level: 'warn',
          time: new Date().toISOString(),
          service,
          dropped,
          msg: 'log lines were dropped: nobody took them in time',
        };
        dropped = 0;
        hold(`${JSON.stringify(lost)}\n`);
      }
      hold(line);
    },
    flush,
  };
}
