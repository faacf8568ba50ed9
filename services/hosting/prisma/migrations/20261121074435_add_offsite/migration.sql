-- CreateEnum
CREATE TYPE "offsite_state" AS ENUM ('pending', 'active', 'removed');

-- CreateEnum
CREATE TYPE "offsite_copy_kind" AS ENUM ('full', 'incremental');

-- CreateEnum
CREATE TYPE "offsite_copy_status" AS ENUM ('running', 'completed', 'failed');

-- CreateTable
CREATE TABLE "offsite_destinations" (
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "state" "offsite_state" NOT NULL,
    "endpoint" TEXT NOT NULL,
    "region" TEXT NOT NULL,
    "bucket" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "credentials" BYTEA,
    "encryption_key_id" TEXT,
    "last_error_code" TEXT NOT NULL DEFAULT '',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "offsite_destinations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "offsite_copies" (
    "id" UUID NOT NULL,
    "destination_id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "kind" "offsite_copy_kind" NOT NULL,
    "status" "offsite_copy_status" NOT NULL,
    "parent_id" UUID,
    "sequence" BIGINT NOT NULL,
    "workflow_id" UUID NOT NULL,
    "object_key" TEXT,
    "size_bytes" BIGINT,
    "raw_bytes" BIGINT,
    "manifest_sha256" TEXT,
    "manifest_mac" TEXT,
    "completed_at" TIMESTAMPTZ(3),
    "verified_at" TIMESTAMPTZ(3),
    "missing_at" TIMESTAMPTZ(3),
    "error_code" TEXT NOT NULL DEFAULT '',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "offsite_copies_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "offsite_destinations_site_id_endpoint_bucket_prefix_idx" ON "offsite_destinations"("site_id", "endpoint", "bucket", "prefix");

-- CreateIndex
CREATE INDEX "offsite_copies_destination_id_id_idx" ON "offsite_copies"("destination_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "offsite_copies_site_id_sequence_key" ON "offsite_copies"("site_id", "sequence");

-- AddForeignKey
ALTER TABLE "offsite_copies" ADD CONSTRAINT "offsite_copies_destination_id_fkey" FOREIGN KEY ("destination_id") REFERENCES "offsite_destinations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What Prisma's schema cannot say.

-- A site has one place for its copies at a time.
CREATE UNIQUE INDEX "offsite_destinations_one_active" ON "offsite_destinations" ("site_id") WHERE "state" = 'active';

ALTER TABLE "offsite_destinations"
  -- The secret of a removed destination is forgotten, and nothing is copied without one.
  ADD CONSTRAINT "offsite_destinations_credentials_while_used" CHECK (("state" = 'removed') = ("credentials" IS NULL)),
  ADD CONSTRAINT "offsite_destinations_active_with_key" CHECK ("state" <> 'active' OR "encryption_key_id" IS NOT NULL);

ALTER TABLE "offsite_copies"
  ADD CONSTRAINT "offsite_copies_parent_of_increment" CHECK (("kind" = 'incremental') = ("parent_id" IS NOT NULL)),
  ADD CONSTRAINT "offsite_copies_archive_whole" CHECK (num_nonnulls("object_key", "size_bytes", "raw_bytes", "manifest_sha256", "manifest_mac", "completed_at") IN (0, 6)),
  ADD CONSTRAINT "offsite_copies_completed_with_archive" CHECK (("status" = 'completed') = ("object_key" IS NOT NULL)),
  ADD CONSTRAINT "offsite_copies_failed_with_code" CHECK (("status" = 'failed') = ("error_code" <> ''));
