type Write = (fields: object, message: string) => void;

/** The part of a pino logger that the engine uses. */
export interface Log {
  debug: Write;
  info: Write;
  warn: Write;
  error: Write;
}

/** The same log with `fields` on every line. */
export function logWith(log: Log, fields: object): Log {
  const write =
    (level: keyof Log): Write =>
    (more, message) =>
      log[level]({ ...fields, ...more }, message);
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
