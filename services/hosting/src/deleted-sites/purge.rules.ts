const dayMs = 24 * 3_600_000;

/** How long a deleted site can be brought back: the live policy, so that changing it changes every site that has not been purged. */
export const deletedSiteRetentionDays = 30;

export const purgeDueAt = (deletedAt: Date, retentionDays = deletedSiteRetentionDays): Date =>
  new Date(deletedAt.getTime() + retentionDays * dayMs);
