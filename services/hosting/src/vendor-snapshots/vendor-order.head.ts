import { vendorScopeSchema } from '@drydock/contracts/vendor-snapshots';
import { z } from 'zod';

/** What every order to the vendor is about. `sendBy`: by Postgres' clock; past it the order is not sent. */
export const vendorOrderInput = {
  packageId: z.string(),
  scope: vendorScopeSchema,
  itemId: z.string(),
  sendBy: z.iso.datetime(),
};

/** Checked once more, sent once, and followed to the end of the vendor's job. */
export const vendorOrderSteps = [{ name: 'recheck' }, { name: 'send' }, { name: 'follow' }] as const;
