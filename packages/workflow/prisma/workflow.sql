-- The parts of the schema that Prisma cannot express. This file runs after the tables of workflow.prisma are created.

-- One sequence for all resources, so that a later claim always has a higher fence. CACHE must stay 1. With a larger
-- cache, sessions would give out fences out of order.
CREATE SEQUENCE "workflow_fence" AS bigint;

-- One unfinished workflow per resource.
CREATE UNIQUE INDEX "workflow_unfinished_resource" ON "workflow" ("resource_key") WHERE "status" IN ('queued', 'running', 'needs_attention');

-- For the sweep, which reads the oldest due rows of each organisation.
CREATE INDEX "workflow_due" ON "workflow" ("org_id", "due_at", "id") WHERE "status" IN ('queued', 'running');
CREATE INDEX "workflow_start_by" ON "workflow" ("start_by") WHERE "status" = 'queued' AND "fence" = 0 AND "start_by" IS NOT NULL;
CREATE INDEX "workflow_attention" ON "workflow" ("id") WHERE "status" = 'needs_attention';

-- For the purge, which removes ended workflows, the oldest first. And for the platform's own workflows, each run of
-- which removes earlier runs.
CREATE INDEX IF NOT EXISTS "workflow_finished" ON "workflow" ("finished_at") WHERE "status" IN ('succeeded', 'failed');
CREATE INDEX IF NOT EXISTS "workflow_own_runs" ON "workflow" ("kind", "status", "finished_at") WHERE "subject_type" IN ('platform', 'deploy_target');

ALTER TABLE "workflow"
  ADD CONSTRAINT "workflow_mode_known" CHECK ("mode" IN ('live', 'sandbox')),
  ADD CONSTRAINT "workflow_status_known" CHECK ("status" IN ('queued', 'running', 'succeeded', 'failed', 'needs_attention')),
  ADD CONSTRAINT "workflow_direction_known" CHECK ("direction" IN ('forward', 'undo', 'abandon')),
  ADD CONSTRAINT "workflow_progress_percent" CHECK ("progress" BETWEEN 0 AND 100),
  -- Only a running workflow that a worker has claimed has a lease.
  ADD CONSTRAINT "workflow_lease_while_running" CHECK ("lease_until" IS NULL OR ("status" = 'running' AND "fence" > 0)),
  ADD CONSTRAINT "workflow_error_when_failed" CHECK ("status" NOT IN ('failed', 'needs_attention') OR "error" IS NOT NULL),
  ADD CONSTRAINT "workflow_finished_with_time" CHECK (("status" IN ('succeeded', 'failed')) = ("finished_at" IS NOT NULL));

ALTER TABLE "workflow_step"
  ADD CONSTRAINT "workflow_step_status_known" CHECK ("status" IN ('pending', 'running', 'succeeded', 'failed', 'undone'));

ALTER TABLE "workflow_schedule"
  ADD CONSTRAINT "workflow_schedule_one_interval" CHECK (num_nonnulls("interval_seconds", "daily_at") = 1),
  ADD CONSTRAINT "workflow_schedule_interval_positive" CHECK ("interval_seconds" > 0),
  ADD CONSTRAINT "workflow_schedule_daily_at_time" CHECK ("daily_at" ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$');
