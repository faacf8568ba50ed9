-- CreateEnum
CREATE TYPE "backup_location" AS ENUM ('worker_host', 'object_storage');

-- CreateEnum
CREATE TYPE "proof_kind" AS ENUM ('immutability', 'restore_drill');

-- AlterTable
ALTER TABLE "backups" ADD COLUMN     "location" "backup_location" NOT NULL DEFAULT 'worker_host',
ADD COLUMN     "purged_at" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "proofs" (
    "id" UUID NOT NULL,
    "kind" "proof_kind" NOT NULL,
    "mode" "mode" NOT NULL,
    "place" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "workflow_id" UUID NOT NULL,
    "backup_id" UUID,
    "finished_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "proofs_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "proofs_workflow_id_key" ON "proofs"("workflow_id");

-- CreateIndex
CREATE INDEX "proofs_kind_mode_finished_at_idx" ON "proofs"("kind", "mode", "finished_at");

-- CreateIndex
CREATE INDEX "backups_expires_at_idx" ON "backups"("expires_at");
