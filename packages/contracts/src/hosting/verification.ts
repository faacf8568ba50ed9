import { z } from 'zod';
import { permissionSchema } from '../platform/permissions';
import { modeSchema, uuidSchema } from '../platform/values';

/** Gateway to keys, POST /internal/verify: is this token good, and for what, right now? Answered from the primary. */
export const verificationRequestSchema = z.strictObject({ token: z.string().max(200) });

/** `valid: false` says no more than that, whatever the cause. */
export const verificationSchema = z.discriminatedUnion('valid', [
  z.strictObject({ valid: z.literal(false) }),
  z.strictObject({
    valid: z.literal(true),
    key_id: uuidSchema,
    org_id: uuidSchema,
    mode: modeSchema,
    /** Already intersected with what the organisation and each of its ancestors is allowed. */
    scopes: z.array(permissionSchema),
    /** Addresses and networks from which the key can be used. Left out: from anywhere. */
    allowed_ips: z.array(z.string()).min(1).optional(),
  }),
]);
export type Verification = z.infer<typeof verificationSchema>;

/** `dd_<live|test>_<prefix>_<secret>`: 12 base62, then 43 base62 and 6 base62 of CRC-32 over all before them. */
export const tokenPattern = /^dd_(live|test)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;
