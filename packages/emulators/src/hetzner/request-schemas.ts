import { z } from 'zod';
import type { Call } from '../protocol/call';
import { invalidField, refused } from './hetzner-errors';

const labels = z.record(
  z.string().regex(/^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/),
  z.string().regex(/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/),
);
const serverName = z.string().regex(/^[a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$/);
const userData = z.string().max(32 * 1024);
/** An id or a name. The public schema says string. Clients also send ids as numbers, and Hetzner accepts both. */
const idOrName = z.union([z.string().min(1), z.int().transform(String)]);

/**
 * Fields and types of the public schema, for the calls that are implemented here. Other fields are refused, so that a
 * driver cannot use fields that do not exist.
 */
export const bodySchemas = {
  createServer: z.strictObject({
    name: serverName,
    server_type: idOrName,
    image: idOrName,
    location: idOrName.optional(),
    start_after_create: z.boolean().optional(),
    ssh_keys: z.array(z.string()).optional(),
    volumes: z.array(z.int()).optional(),
    networks: z.array(z.int()).optional(),
    firewalls: z.array(z.strictObject({ firewall: z.int() })).optional(),
    placement_group: z.int().optional(),
    user_data: userData.optional(),
    labels: labels.optional(),
    automount: z.boolean().optional(),
    public_net: z
      .strictObject({
        enable_ipv4: z.boolean().optional(),
        enable_ipv6: z.boolean().optional(),
        ipv4: z.int().nullable().optional(),
        ipv6: z.int().nullable().optional(),
      })
      .optional(),
  }),
  updateServer: z.strictObject({ name: serverName.optional(), labels: labels.optional() }),
  createImage: z.strictObject({
    type: z.enum(['snapshot', 'backup']).optional(),
    description: z.string().optional(),
    labels: labels.optional(),
  }),
  rebuild: z.strictObject({ image: idOrName, user_data: userData.optional() }),
  updateImage: z.strictObject({
    description: z.string().optional(),
    type: z.literal('snapshot').optional(),
    labels: labels.optional(),
  }),
};

/** @throws Refusal 400 or 422 */
export function parseBody<T>(schema: z.ZodType<T>, call: Call): T {
  const parsed = schema.safeParse(readJson(call));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalidField(
    issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : (issue?.path.join('.') ?? ''),
    issue?.message ?? 'invalid',
  );
}

function readJson({ body, headers }: Call): unknown {
  if (body.length === 0) return {};
  if (!(headers['content-type'] ?? '').startsWith('application/json'))
    throw refused('json_error', 'request body must be application/json');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw refused('json_error', 'invalid JSON in request');
  }
}

/** Allows only the parameters that the listing has in the public schema. @throws Refusal 422 for another one */
export function allowQuery({ query }: Call, names: readonly string[]): void {
  for (const name of query.keys()) if (!names.includes(name)) throw invalidField(name, 'unknown parameter');
}

/** @throws Refusal 422 for a body where the schema has none */
export function allowNoBody({ body }: Call): void {
  if (body.length > 0) throw refused('invalid_input', 'no body expected');
}
