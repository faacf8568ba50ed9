import { z } from 'zod';
import { permissionSchema } from './permissions';
import { modeSchema, uuidSchema } from './values';

/**
 * The gateway's question to keys, POST /internal/verify: is this token valid now, and for what? It is answered from the
 * primary.
 */
export const verificationRequestSchema = z.strictObject({ token: z.string().max(200) });

/** `valid: false` says nothing more, whatever the cause is. */
export const verificationSchema = z.discriminatedUnion('valid', [
  z.strictObject({ valid: z.literal(false) }),
  z.strictObject({
    valid: z.literal(true),
    key_id: uuidSchema,
    org_id: uuidSchema,
    mode: modeSchema,
    /** The key's scopes that its organisation and each of its ancestors allow. */
    scopes: z.array(permissionSchema),
    /** Addresses and networks from which the key can be used. When left out, from anywhere. */
    allowed_ips: z.array(z.string()).min(1).optional(),
  }),
]);
export type Verification = z.infer<typeof verificationSchema>;

/**
 * `dd_<live|test>_<prefix>_<secret>`: 12 base62 characters, then 43, and then 6 for the CRC-32 of everything before
 * them.
 */
export const tokenPattern = /^dd_(live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
