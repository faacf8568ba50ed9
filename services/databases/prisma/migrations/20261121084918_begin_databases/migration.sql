-- CreateEnum
CREATE TYPE "backup_status" AS ENUM ('queued', 'running', 'completed', 'failed');

-- CreateEnum
CREATE TYPE "mode" AS ENUM ('live', 'sandbox');

-- CreateEnum
CREATE TYPE "database_engine" AS ENUM ('postgres', 'mysql');

-- CreateEnum
CREATE TYPE "database_status" AS ENUM ('provisioning', 'available', 'failed', 'suspended', 'deleting', 'deleted');

-- CreateTable
CREATE TABLE "audit_outbox" (
    "seq" BIGSERIAL NOT NULL,
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" TEXT NOT NULL,
    "actor_key_id" UUID,
    "action" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "workflow_id" UUID,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_outbox_pkey" PRIMARY KEY ("seq")
);

-- CreateTable
CREATE TABLE "database_backups" (
    "id" UUID NOT NULL,
    "database_id" UUID NOT NULL,
    "status" "backup_status" NOT NULL,
    "engine_version" TEXT NOT NULL,
    "sequence" BIGINT NOT NULL,
    "storage_key" TEXT,
    "size_bytes" BIGINT,
    "manifest_mac" TEXT,
    "checksum_sha256" TEXT,
    "error_code" TEXT NOT NULL DEFAULT '',
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "completed_at" TIMESTAMPTZ(3),

    CONSTRAINT "database_backups_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "idempotency_records" (
    "id" BYTEA NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "caller_key_id" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "claim" UUID NOT NULL,
    "lease_expires_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "accepted" JSONB,
    "status" INTEGER,
    "headers" JSONB,
    "body" TEXT,

    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "managed_databases" (
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "label" TEXT NOT NULL,
    "engine" "database_engine" NOT NULL,
    "engine_version" TEXT NOT NULL,
    "size" TEXT NOT NULL,
    "status" "database_status" NOT NULL,
    "status_detail" TEXT NOT NULL DEFAULT '',
    "host" TEXT NOT NULL DEFAULT '',
    "port" INTEGER NOT NULL DEFAULT 0,
    "database_name" TEXT NOT NULL,
    "username" TEXT NOT NULL,
    "high_availability" BOOLEAN NOT NULL,
    "backup_sequence" BIGINT NOT NULL DEFAULT 0,
    "last_backup_at" TIMESTAMPTZ(3),
    "restore_verified_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "managed_databases_pkey" PRIMARY KEY ("id")
);

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
    "claims_without_word" INTEGER NOT NULL DEFAULT 0,
    "settle_failures" INTEGER NOT NULL DEFAULT 0,
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
CREATE UNIQUE INDEX "audit_outbox_id_key" ON "audit_outbox"("id");

-- CreateIndex
CREATE INDEX "database_backups_database_id_id_idx" ON "database_backups"("database_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "database_backups_database_id_sequence_key" ON "database_backups"("database_id", "sequence");

-- CreateIndex
CREATE INDEX "idempotency_records_created_at_idx" ON "idempotency_records"("created_at");

-- CreateIndex
CREATE INDEX "managed_databases_org_id_mode_id_idx" ON "managed_databases"("org_id", "mode", "id");

-- CreateIndex
CREATE INDEX "workflow_subject_type_subject_id_id_idx" ON "workflow"("subject_type", "subject_id", "id" DESC);

-- CreateIndex
CREATE INDEX "workflow_schedule_next_run_at_idx" ON "workflow_schedule"("next_run_at");

-- AddForeignKey
ALTER TABLE "database_backups" ADD CONSTRAINT "database_backups_database_id_fkey" FOREIGN KEY ("database_id") REFERENCES "managed_databases"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "workflow_step" ADD CONSTRAINT "workflow_step_workflow_id_fkey" FOREIGN KEY ("workflow_id") REFERENCES "workflow"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- From here on by hand: what Prisma's schema cannot say.

-- What Prisma's schema cannot say about workflows. Runs after the tables of workflow.prisma exist.

-- One sequence for all resources: a later claim always has the higher fence. CACHE stays 1, or sessions would hand them out of order.
CREATE SEQUENCE "workflow_fence" AS bigint;

-- One unfinished workflow per resource.
CREATE UNIQUE INDEX "workflow_unfinished_resource" ON "workflow" ("resource_key") WHERE "status" IN ('queued', 'running', 'needs_attention');

-- The sweep: each organisation's oldest due rows.
CREATE INDEX "workflow_due" ON "workflow" ("org_id", "due_at", "id") WHERE "status" IN ('queued', 'running');
CREATE INDEX "workflow_start_by" ON "workflow" ("start_by") WHERE "status" = 'queued' AND "fence" = 0 AND "start_by" IS NOT NULL;
CREATE INDEX "workflow_attention" ON "workflow" ("id") WHERE "status" = 'needs_attention';

ALTER TABLE "workflow"
  ADD CONSTRAINT "workflow_mode_known" CHECK ("mode" IN ('live', 'sandbox')),
  ADD CONSTRAINT "workflow_status_known" CHECK ("status" IN ('queued', 'running', 'succeeded', 'failed', 'needs_attention')),
  ADD CONSTRAINT "workflow_direction_known" CHECK ("direction" IN ('forward', 'undo', 'abandon')),
  ADD CONSTRAINT "workflow_progress_percent" CHECK ("progress" BETWEEN 0 AND 100),
  -- A lease is held by somebody at work and by nobody else.
  ADD CONSTRAINT "workflow_lease_while_running" CHECK ("lease_until" IS NULL OR ("status" = 'running' AND "fence" > 0)),
  ADD CONSTRAINT "workflow_error_when_failed" CHECK ("status" NOT IN ('failed', 'needs_attention') OR "error" IS NOT NULL),
  ADD CONSTRAINT "workflow_finished_with_time" CHECK (("status" IN ('succeeded', 'failed')) = ("finished_at" IS NOT NULL));

ALTER TABLE "workflow_step"
  ADD CONSTRAINT "workflow_step_status_known" CHECK ("status" IN ('pending', 'running', 'succeeded', 'failed', 'undone'));

ALTER TABLE "workflow_schedule"
  ADD CONSTRAINT "workflow_schedule_one_rhythm" CHECK (num_nonnulls("interval_seconds", "daily_at") = 1),
  ADD CONSTRAINT "workflow_schedule_interval_positive" CHECK ("interval_seconds" > 0),
  ADD CONSTRAINT "workflow_schedule_daily_at_time" CHECK ("daily_at" ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$');

ALTER TABLE "database_backups"
  ADD CONSTRAINT "database_backups_archive_when_completed" CHECK (
    num_nonnulls("storage_key", "size_bytes", "manifest_mac", "checksum_sha256", "completed_at") IN (0, 5)
    AND ("status" <> 'completed' OR "storage_key" IS NOT NULL)
  );
