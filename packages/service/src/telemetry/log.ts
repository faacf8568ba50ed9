import pino, { type DestinationStream, type Logger } from 'pino';
import { currentLogContext } from './log-context';
import { serializeError } from './log-error';
import { standardLogOutput } from './log-output';
import { redact } from './redact';

export type Log = Logger;

const secretNames = [
  'authorization',
  'token',
  'secret',
  'password',
  'idempotencyKey',
  'idempotency_key',
  'secret_access_key',
  'database_url',
  'cookie',
];
/**
 * Paths of secrets in log lines: at the top level, one and two levels down, and as names of headers. Log lines are
 * flat, so deeper levels are not needed.
 */
const redactedPaths = [
  ...secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
  ...['["idempotency-key"]', '["set-cookie"]'].flatMap((name) => [name, `*${name}`, `*.*${name}`]),
];

/**
 * JSON lines on stdout, which never wait for their reader (`log-output.ts`). Every line has `service`, and
 * `request_id`, `workflow_id`, `org_id` of its work; `trace_id` and `span_id` come from the telemetry preload. Secrets
 * are redacted by the name of their member, and in every line by their form and by their value if they are this
 * process's own (`redact`); that is no reason to log one. Rows that Postgres' errors quote are left out.
 */
export function createLog(options: { service: string; level?: string; destination?: DestinationStream }): Log {
  return pino(
    {
      level: options.level ?? 'info',
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: redactedPaths, censor: '[redacted]' },
      serializers: { err: serializeError },
      mixin: () => ({ ...currentLogContext() }),
      hooks: { streamWrite: redact },
    },
    options.destination ?? standardLogOutput(options.service),
  );
}
