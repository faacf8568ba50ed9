-- AlterTable
ALTER TABLE "sites" ADD COLUMN IF NOT EXISTS "next_backup_at" TIMESTAMPTZ(3) NOT NULL DEFAULT '1970-01-01 00:00:00 +00:00';

-- CreateIndex
CREATE INDEX IF NOT EXISTS "workflow_schedule_last_run_at_idx" ON "workflow_schedule"("last_run_at");

-- From here on by hand: what Prisma's schema cannot say. docs/guides/upgrading.md says how they are made beforehand without keeping anybody waiting.

-- What ended, oldest first: the purge. And runs of the platform's own, of which each forgets those before it.
CREATE INDEX IF NOT EXISTS "workflow_finished" ON "workflow" ("finished_at") WHERE "status" IN ('succeeded', 'failed');
CREATE INDEX IF NOT EXISTS "workflow_own_runs" ON "workflow" ("kind", "status", "finished_at") WHERE "subject_type" IN ('platform', 'deploy_target');

-- The nightly backups: whose turn has come.
CREATE INDEX IF NOT EXISTS "sites_next_backup" ON "sites" ("mode", "next_backup_at", "id") WHERE "daily_backups";

-- Expiry: what is over, and what of it is still stored and under no lock.
CREATE INDEX IF NOT EXISTS "backups_to_expire" ON "backups" ("mode", "expires_at", "id") WHERE "status" = 'completed';
CREATE INDEX IF NOT EXISTS "backups_to_remove" ON "backups" ("mode", (coalesce("locked_until", '1970-01-01T00:00:00Z')), "id")
  WHERE "status" = 'expired' AND "purged_at" IS NULL;
CREATE INDEX IF NOT EXISTS "backups_failed_to_remove" ON "backups" ("mode", "created_at", "id") WHERE "status" = 'failed' AND "purged_at" IS NULL;
CREATE INDEX IF NOT EXISTS "deleted_sites_needed_backup" ON "deleted_sites" ("backup_id") WHERE "purged_at" IS NULL AND "restored_at" IS NULL;

-- The drill: completed backups in an order of no meaning.
CREATE INDEX IF NOT EXISTS "backups_shuffled" ON "backups" ("mode", (uuid_hash_extended("id", 0))) WHERE "status" = 'completed';
