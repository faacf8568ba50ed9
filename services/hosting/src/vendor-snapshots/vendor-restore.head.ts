import { z } from 'zod';
import { vendorOrderInput, vendorOrderSteps } from './vendor-order.head';

/** `handle`: the restore point, exactly as the vendor listed it. `isBeside`: into a mailbox beside the original. */
export const vendorRestoreHead = {
  kind: 'vendor_restore',
  input: z.strictObject({ ...vendorOrderInput, handle: z.string(), isBeside: z.boolean() }),
  steps: vendorOrderSteps,
} as const;
