-- CreateIndex
CREATE INDEX IF NOT EXISTS "workflow_schedule_last_run_at_idx" ON "workflow_schedule"("last_run_at");

-- From here on by hand: what Prisma's schema cannot say. docs/guides/upgrading.md says how they are made beforehand without keeping anybody waiting.

-- What ended, oldest first: the purge. And runs of the platform's own, of which each forgets those before it.
CREATE INDEX IF NOT EXISTS "workflow_finished" ON "workflow" ("finished_at") WHERE "status" IN ('succeeded', 'failed');
CREATE INDEX IF NOT EXISTS "workflow_own_runs" ON "workflow" ("kind", "status", "finished_at") WHERE "subject_type" IN ('platform', 'deploy_target');
