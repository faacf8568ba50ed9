import type { Writable } from 'node:stream';

/** A system call a line is a tenth of a request; a crash loses at most this much of the log. */
const flushMs = 50;
const flushCharacters = 32_768;

export interface BufferedOutput {
  write(line: string): void;
  flush(): void;
}

/** Collects lines and writes them together. Call `flush` before the process ends. */
export function createBufferedOutput(output: Writable): BufferedOutput {
  let held = '';
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (held === '') return;
    const text = held;
    held = '';
    output.write(text);
  };
  return {
    write: (line) => {
      held += line;
      if (held.length >= flushCharacters) flush();
      else timer ??= setTimeout(flush, flushMs);
    },
    flush,
  };
}
