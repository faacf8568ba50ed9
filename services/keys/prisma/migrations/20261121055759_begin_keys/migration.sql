-- CreateEnum
CREATE TYPE "mode" AS ENUM ('live', 'sandbox');

-- CreateTable
CREATE TABLE "api_keys" (
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "secret_hash" BYTEA NOT NULL,
    "pepper_version" INTEGER NOT NULL,
    "scopes" TEXT[],
    "mode" "mode" NOT NULL,
    "created_by" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "last_used_at" TIMESTAMPTZ(3),
    "valid_until" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "audit_log" (
    "id" UUID NOT NULL,
    "service" TEXT NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "actor_key_id" UUID,
    "action" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "workflow_id" UUID,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "audit_log_pkey" PRIMARY KEY ("id")
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
CREATE TABLE "orgs" (
    "id" UUID NOT NULL,
    "parent_id" UUID,
    "path" UUID[],
    "name" TEXT NOT NULL,
    "permissions" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "orgs_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_prefix_key" ON "api_keys"("prefix");

-- CreateIndex
CREATE INDEX "api_keys_org_id_id_idx" ON "api_keys"("org_id", "id");

-- CreateIndex
CREATE INDEX "audit_log_org_id_mode_id_idx" ON "audit_log"("org_id", "mode", "id");

-- CreateIndex
CREATE INDEX "idempotency_records_created_at_idx" ON "idempotency_records"("created_at");

-- CreateIndex
CREATE INDEX "orgs_path_idx" ON "orgs" USING GIN ("path");

-- CreateIndex
CREATE INDEX "orgs_parent_id_idx" ON "orgs"("parent_id");

-- AddForeignKey
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "orgs"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "orgs" ADD CONSTRAINT "orgs_parent_id_fkey" FOREIGN KEY ("parent_id") REFERENCES "orgs"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
