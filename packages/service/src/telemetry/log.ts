import type { Writable } from 'node:stream';
import type { Problem } from '@drydock/contracts/platform/problem';
import pino, { type DestinationStream, type Logger } from 'pino';
import { currentLogFields } from './log-context';
import { redact, struckOut } from './redact';

export type Log = Logger;

const secretNames: ReadonlySet<string> = new Set([
  'authorization',
  'token',
  'secret',
  'password',
  'idempotencyKey',
  'idempotency_key',
  'idempotency-key',
  'secret_access_key',
  'database_url',
  'cookie',
  'set-cookie',
]);
/** How many levels below a line's members are searched for secret names. */
const secretDepthMax = 2;

/**
 * Makes a log that writes JSON lines to stdout and never waits for their reader. Each line has `service`, the fields of
 * `LogContext` and the id of its span. Secrets are redacted by the name of their member, by their form, and by their
 * value if they are this process's own (`redact`). Rows that Postgres quotes in its errors are left out.
 */
export function createLog(options: { service: string; level?: string; destination?: DestinationStream }): Log {
  return pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => withoutSecrets(fields, 0),
      },
      // Redacts the fields of a child log, which `formatters` does not see.
      redact: { paths: [...secretNames].map((name) => `["${name}"]`), censor: struckOut },
      serializers: { err: serializeError },
      mixin: currentLogFields,
      hooks: { streamWrite: redact },
    },
    options.destination ?? standardLogOutput(options.service),
  );
}

/**
 * How long lines are collected before they are written. A system call for each line would add a tenth to the cost of a
 * request. A process that is killed loses the lines that it has not written.
 */
const flushMs = 50;
const flushCharacters = 32_768;
/**
 * The most characters that wait for a reader, about 20,000 lines. A reader that has stopped must neither stop the
 * process nor fill its memory.
 */
const waitingMax = 8_000_000;

export interface LogOutput {
  /** Accepts a line that ends in a newline. Never waits and never throws. */
  write(line: string): void;
  /** Writes the collected lines. They are also written when the process ends. */
  flush(): void;
}

let standard: LogOutput | undefined;

/** The log output of the process, to stdout. `service` is in the line that reports dropped lines. */
const standardLogOutput = (service: string): LogOutput => {
  standard ??= createLogOutput(service, process.stdout);
  return standard;
};

/**
 * Collects lines and writes them together, without waiting for their reader. If too much waits, lines are dropped. A
 * line with their number precedes the next line that is accepted.
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
  // An error means that the reader has gone. The process continues without a reader.
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

/**
 * The fields, with secrets redacted. Pino's own redaction takes 44 µs a line, because it follows each path separately.
 */
function withoutSecrets(fields: Record<string, unknown>, depth: number): Record<string, unknown> {
  let shown = fields;
  for (const [name, value] of Object.entries(fields)) {
    const safe = secretNames.has(name) && value !== undefined ? struckOut : withoutSecretsIn(value, depth);
    if (safe === value) continue;
    if (shown === fields) shown = { ...fields };
    shown[name] = safe;
  }
  return shown;
}

function withoutSecretsIn(value: unknown, depth: number): unknown {
  if (value instanceof Error) return serializeError(value);
  if (typeof value !== 'object' || value === null || depth >= secretDepthMax) return value;
  if (Array.isArray(value)) return value.map((item) => withoutSecretsIn(item, depth + 1));
  // An object with `toJSON`, such as a date, is logged in the form that it chooses itself.
  if ('toJSON' in value) return value;
  return withoutSecrets(value as Record<string, unknown>, depth + 1);
}

/** Fields in which Postgres quotes the refused row or value. They are customers' data, which must not be logged. */
const rowFields: readonly string[] = ['detail', 'where', 'internalQuery'];
/** The depth to which an error is searched. An error of Prisma contains Postgres' own error three levels down. */
const depthMax = 6;

/** An error in pino's form, without the rows that Postgres quotes. */
const serializeError = (error: unknown): unknown =>
  error instanceof Error ? withoutRows(pino.stdSerializers.err(error), 0) : error;

function withoutRows(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutRows(item, depth + 1));
  if (typeof value !== 'object' || value === null || depth > depthMax) return value;
  if (!(depth === 0 || isPlain(value) || value instanceof Error)) return withoutSecretsIn(value, depth);
  // An error with a severity comes from Postgres. In other errors, `detail` is the text for the caller.
  const shown = Object.entries(value).filter(([name]) => !('severity' in value && rowFields.includes(name)));
  return Object.fromEntries(
    shown.map(([name, item]) => [name, secretNames.has(name) ? struckOut : withoutRows(item, depth + 1)]),
  );
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Milliseconds after which a continuing outage is logged again. */
const outageMs = 30_000;
const toldMs = new Map<unknown, number>();

/**
 * Whether a refusal about the same dependency was logged in the last 30 s. If not, this refusal counts as logged now.
 * During an outage every request fails for the same reason, so a repeated refusal is logged without its cause and not
 * as an error.
 */
export function isKnownOutage({ code, details }: Problem): boolean {
  if (code !== 'dependency_unavailable') return false;
  const dependency = details.extra?.['dependency'];
  const nowMs = performance.now();
  if (nowMs - (toldMs.get(dependency) ?? Number.NEGATIVE_INFINITY) < outageMs) return true;
  toldMs.set(dependency, nowMs);
  return false;
}
