-- The tables that Prisma makes of workflow.prisma, for the tests of this package. Services have them in migrations.

-- CreateTable
CREATE TABLE "workflow" (
    "id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "resource_key" TEXT NOT NULL,
    "subject_type" TEXT NOT NULL,
    "subject_id" TEXT NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" TEXT NOT NULL,
    "input" JSONB NOT NULL,
    "actor_key_id" UUID,
    "request_id" TEXT NOT NULL,
    "traceparent" TEXT,
    "status" TEXT NOT NULL DEFAULT 'queued',
    "direction" TEXT NOT NULL DEFAULT 'forward',
    "fence" BIGINT NOT NULL DEFAULT 0,
    "lease_until" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "start_by" TIMESTAMPTZ(3),
    "dispatch_number" INTEGER NOT NULL DEFAULT 0,
    "dispatched_at" TIMESTAMPTZ(3),
    "dispatch_after" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "consecutive_crashes" INTEGER NOT NULL DEFAULT 0,
    "end_failures" INTEGER NOT NULL DEFAULT 0,
    "progress" INTEGER NOT NULL DEFAULT 0,
    "version" INTEGER NOT NULL DEFAULT 1,
    "error" JSONB,
    "error_internal" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "workflow_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "workflow_step" (
    "workflow_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "undo_failures" INTEGER NOT NULL DEFAULT 0,
    "output" JSONB,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "undone_at" TIMESTAMPTZ(3),

    CONSTRAINT "workflow_step_pkey" PRIMARY KEY ("workflow_id","name")
);

-- CreateTable
CREATE TABLE "workflow_schedule" (
    "name" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "resource_key" TEXT NOT NULL,
    "subject_type" TEXT NOT NULL,
    "subject_id" TEXT NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" TEXT NOT NULL,
    "input" JSONB NOT NULL,
    "interval_seconds" INTEGER,
    "daily_at" TEXT,
    "anchor_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "next_run_at" TIMESTAMPTZ(3) NOT NULL,
    "last_run_at" TIMESTAMPTZ(3),
    "last_workflow_id" UUID,

    CONSTRAINT "workflow_schedule_pkey" PRIMARY KEY ("name")
);

-- CreateIndex
CREATE INDEX "workflow_subject_type_subject_id_id_idx" ON "workflow"("subject_type", "subject_id", "id" DESC);

-- CreateIndex
CREATE INDEX "workflow_schedule_next_run_at_idx" ON "workflow_schedule"("next_run_at");

-- CreateIndex
CREATE INDEX "workflow_schedule_last_run_at_idx" ON "workflow_schedule"("last_run_at");

-- AddForeignKey
ALTER TABLE "workflow_step" ADD CONSTRAINT "workflow_step_workflow_id_fkey" FOREIGN KEY ("workflow_id") REFERENCES "workflow"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- CreateTable
CREATE TABLE "workflow_event" (
    "seq" BIGSERIAL NOT NULL,
    "id" UUID NOT NULL,
    "type" TEXT NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "actor_key_id" UUID,
    "workflow_id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "request_id" TEXT NOT NULL,
    "error" JSONB,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "workflow_event_pkey" PRIMARY KEY ("seq")
);

-- CreateIndex
CREATE UNIQUE INDEX "workflow_event_id_key" ON "workflow_event"("id");
