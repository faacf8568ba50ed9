import { z } from 'zod';
import type { Call } from '../protocol/call';
import { unverified } from './proxmox-errors';

/** Forms carry only text. The API takes booleans as 0 and 1. */
const flag = z.enum(['0', '1']).transform((text) => text === '1');
const int = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number);
const configId = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]+$/);
const dnsName = z.string().regex(/^(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*$/);

/**
 * Fields and types of the public API viewer, for the calls that are implemented here. Other fields are refused, so that
 * a driver cannot use fields that do not exist.
 */
export const bodySchemas = {
  clone: z.strictObject({
    newid: int.pipe(z.int().min(100).max(999_999_999)),
    name: dnsName.optional(),
    description: z.string().max(8_192).optional(),
    full: flag.optional(),
    target: z.string().optional(),
    storage: z.string().optional(),
    pool: z.string().optional(),
    snapname: configId.max(40).optional(),
    format: z.enum(['raw', 'qcow2', 'vmdk']).optional(),
  }),
  config: z.strictObject({
    cores: int.pipe(z.int().min(1)).optional(),
    memory: int.pipe(z.int().min(16)).optional(),
    description: z.string().max(8_192).optional(),
    agent: z.string().optional(),
    digest: z.string().max(64).optional(),
  }),
  resize: z.strictObject({
    disk: z.string(),
    size: z.string().regex(/^\+?\d+(?:\.\d+)?[KMGT]?$/),
    digest: z.string().optional(),
  }),
  snapshot: z.strictObject({
    snapname: configId.max(40),
    description: z.string().optional(),
    vmstate: flag.optional(),
  }),
  rollback: z.strictObject({ start: flag.optional() }),
  power: z.strictObject({ timeout: int.optional(), skiplock: flag.optional() }),
};

/** @throws Refusal 400 */
export function parseForm<T>(schema: z.ZodType<T>, { body }: Call): T {
  const parsed = schema.safeParse(Object.fromEntries(new URLSearchParams(body.toString('utf8'))));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => [
          key,
          'property is not defined in schema and the schema does not allow additional properties',
        ])
      : [[String(issue.path[0] ?? ''), issue.message]],
  );
  throw unverified(Object.fromEntries(problems));
}

/** Allows only the parameters that the call has in the public schema. @throws Refusal 400 for another one */
export function allowQuery({ query }: Call, names: readonly string[]): void {
  const unknown = [...query.keys()].filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw unverified(Object.fromEntries(unknown.map((name) => [name, 'property is not defined in schema'])));
}
