import { z } from 'zod';
import { vendorOrderInput, vendorOrderSteps } from './vendor-order.head';

export const vendorTakeSnapshotHead = {
  kind: 'vendor_take_snapshot',
  input: z.strictObject(vendorOrderInput),
  steps: vendorOrderSteps,
} as const;
