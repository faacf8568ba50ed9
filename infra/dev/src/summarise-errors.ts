import { z } from 'zod';

/** pino's level of `error`; `fatal` is above it. */
const errorLevel = 50;
const quietMs = 60_000;

const entrySchema = z.looseObject({ level: z.number(), msg: z.string().default('') });

/**
 * Picks the errors out of a process' log for the terminal: the message alone, and the same message once a minute.
 * Feed it the process' output as it comes.
 */
export function createErrorSummary(name: string, say: (line: string) => void): (chunk: string) => void {
  let rest = '';
  const lastSaidMs = new Map<string, number>();
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = readError(line);
      if (message === null || performance.now() - (lastSaidMs.get(message) ?? -quietMs) < quietMs) continue;
      lastSaidMs.set(message, performance.now());
      say(`${name}: ${message}`);
    }
  };
}

function readError(line: string): string | null {
  if (!line.startsWith('{')) return null;
  try {
    const entry = entrySchema.parse(JSON.parse(line));
    return entry.level >= errorLevel ? entry.msg : null;
  } catch {
    return null; // a line that is no log entry of ours
  }
}
