import {
  apiFields,
  type ConfigOf,
  type Environment,
  processFields,
  readConfig,
  secretsField,
  secretsForm,
} from '@drydock/service/process';
import { z } from 'zod';

/**
 * `{"hosting":"<hex>"}`: the services whose audit entries and events are accepted, each with the secret that signs its
 * deliveries. A service has several secrets while its secret is rotated.
 */
const auditSecretsSchema = z.record(z.string(), z.string().regex(secretsForm));

/** `{"2":"<hex>"}`: peppers by version. New hashes use the highest version; the others verify old hashes. */
const peppersSchema = z.record(z.string().regex(/^[1-9][0-9]{0,3}$/), z.string().regex(/^(?:[0-9a-f]{2}){32,}$/i));

function parseJson(text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'must be JSON' });
    return z.NEVER;
  }
}

const ownFields = {
  DATABASE_URL: z
    .url('must be a URL')
    .meta({ description: "Postgres URL of keys' own database and role; the primary", secret: true }),
  SERVICE_SECRET: secretsField("Source of keys' own keys: pepper, derivation of replayed secrets, cursors"),
  TOKEN_PEPPERS: z.string().default('{}').transform(parseJson).pipe(peppersSchema).meta({
    description: 'JSON: peppers of the tokens by version, beside version 1 which comes from SERVICE_SECRET',
    secret: true,
  }),
};

/** Settings that the API and the worker share: the API shows webhooks' secrets, and the worker signs with them. */
const webhookFields = {
  WEBHOOK_SECRET: secretsField('Source of the secrets of webhooks; shared by keys and its worker'),
  DRYDOCK_WEBHOOK_ALLOW: z
    .string()
    .regex(/^[A-Za-z0-9.-]+:\d{1,5}(?:,[A-Za-z0-9.-]+:\d{1,5})*$/, 'must be host:port,host:port')
    .optional()
    .meta({
      description:
        'Receivers of webhooks that may be inside our network ' +
        'and need no https, host:port,host:port: none in production',
    }),
};

export const serverShape = {
  ...processFields('keys'),
  ...apiFields,
  ...ownFields,
  ...webhookFields,
  INTERNAL_TOKEN_SECRET: secretsField('Verifies the calls of the gateway; shared with it alone'),
  AUDIT_TOKEN_SECRETS: z.string().default('{}').transform(parseJson).pipe(auditSecretsSchema).meta({
    description: 'JSON: the secret with which each service signs the delivery of its audit entries',
    secret: true,
  }),
};
export type ServerConfig = ConfigOf<typeof serverShape>;
export const readServerConfig = (environment: Environment = process.env): ServerConfig =>
  readConfig(serverShape, environment);

export const workerShape = {
  ...processFields('keys'),
  DATABASE_URL: ownFields.DATABASE_URL,
  ...webhookFields,
  WEBHOOK_LEASE_SECONDS: z.coerce
    .number()
    .min(1)
    .default(30)
    .meta({ description: 'How long a worker owns a delivery: after its death the event is sent again then' }),
};
export type WorkerConfig = ConfigOf<typeof workerShape>;
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig =>
  readConfig(workerShape, environment);

export const readBootstrapConfig = (environment: Environment = process.env): ConfigOf<typeof ownFields> =>
  readConfig(ownFields, environment);
