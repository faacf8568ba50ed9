import { z } from 'zod';

/** Ids are integers up to 2^53-1; only fields that are used are parsed. Source: the public schema of February 2026. */
const id = z.int().positive();

export const actionSchema = z.object({
  id,
  command: z.string(),
  status: z.enum(['running', 'success', 'error']),
  progress: z.number().nullish(),
  resources: z.array(z.object({ id, type: z.string() })),
  error: z.object({ code: z.string(), message: z.string() }).nullish(),
});
export type HetznerAction = z.infer<typeof actionSchema>;

const address = z.object({ ip: z.string() }).nullish();

export const serverSchema = z.object({
  id,
  name: z.string(),
  status: z.string(),
  locked: z.boolean(),
  protection: z.object({ rebuild: z.boolean(), delete: z.boolean() }),
  public_net: z.object({ ipv4: address, ipv6: address }).nullish(),
  server_type: z.object({ name: z.string(), architecture: z.string().nullish() }),
  location: z.object({ name: z.string() }).nullish(),
  // This field is being removed; older answers have the location only here.
  datacenter: z.object({ location: z.object({ name: z.string() }) }).nullish(),
  image: z.object({ id, name: z.string().nullish() }).nullish(),
  primary_disk_size: z.number().nullish(),
});
export type HetznerServer = z.infer<typeof serverSchema>;

export const imageSchema = z.object({
  id,
  type: z.string(),
  status: z.string(),
  description: z.string(),
  image_size: z.number().nullish(),
  disk_size: z.number(),
  created: z.iso.datetime({ offset: true }),
  created_from: z.object({ id }).nullish(),
  bound_to: id.nullish(),
  architecture: z.string().nullish(),
  protection: z.object({ delete: z.boolean() }),
  deleted: z.string().nullish(),
});
export type HetznerImage = z.infer<typeof imageSchema>;

/** `next_page` null or missing: the last one. */
export const metaSchema = z.object({ pagination: z.object({ next_page: z.int().positive().nullish() }) });

export const errorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });
