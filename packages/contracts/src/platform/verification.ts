import { z } from 'zod';
import { permissionSchema } from './permissions';
import { modeSchema, uuidSchema } from './values';

/**
 * From the gateway to keys, POST /internal/verify: whether this token is valid now, and for what. Answered from the
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
    /** Already reduced to what the organisation and each of its ancestors is allowed. */
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
