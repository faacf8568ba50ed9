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
/** At the top and one and two levels down, and as header names: deep enough for what we log, which is flat by habit. */
const redactedPaths = [
  ...secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
  ...['["idempotency-key"]', '["set-cookie"]'].flatMap((name) => [name, `*${name}`, `*.*${name}`]),
];

/**
 * JSON lines on stdout, which never wait for their reader (`log-output.ts`). Every line has `service`, and `request_id`, `workflow_id`, `org_id` of the work it belongs to; `trace_id` and `span_id`
 * come from the telemetry preload. Secrets are struck out by the name of their member, and in every line by their form and
 * where they are this process' own (`redact`); nobody should count on that and log one. Of Postgres' errors the rows that
 * they quote are left out.
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
