import { z } from 'zod';

/** `deletedSiteId`: staff want this one gone now; null, by the clock: all whose window has closed. */
export const purgeDeletedSitesHead = {
  kind: 'purge_deleted_sites',
  input: z.strictObject({ deletedSiteId: z.uuid().nullable() }),
  steps: [{ name: 'close' }, { name: 'remove' }],
} as const;
