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
    "scopes" TEXT[] NOT NULL,
    "mode" "mode" NOT NULL,
    "created_by" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "last_used_at" TIMESTAMPTZ(3),
    "valid_until" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_key_listings" (
    "key_id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,

    CONSTRAINT "api_key_listings_pkey" PRIMARY KEY ("key_id","org_id")
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
    "path" UUID[] NOT NULL,
    "name" TEXT NOT NULL,
    "permissions" TEXT[] NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "orgs_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_prefix_key" ON "api_keys"("prefix");

-- CreateIndex
CREATE INDEX "api_key_listings_org_id_key_id_idx" ON "api_key_listings"("org_id", "key_id");

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

-- AddForeignKey
ALTER TABLE "api_key_listings" ADD CONSTRAINT "api_key_listings_key_id_fkey" FOREIGN KEY ("key_id") REFERENCES "api_keys"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_key_listings" ADD CONSTRAINT "api_key_listings_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "orgs"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- From here on by hand: what Prisma's schema cannot say.

-- The list of one organisation, newest first. Revoked keys weigh nothing.
CREATE INDEX "api_keys_listed" ON "api_keys" ("org_id", "id") WHERE "revoked_at" IS NULL;

-- A sandbox key's list of a subtree, which may be full of live keys.
CREATE INDEX "api_key_listings_sandbox" ON "api_key_listings" ("org_id", "key_id") WHERE "mode" = 'sandbox';

-- Keys whose grace time will end: few at any time.
CREATE INDEX "api_keys_in_grace" ON "api_keys" ("valid_until") WHERE "valid_until" IS NOT NULL AND "revoked_at" IS NULL;

-- Two commands at once make one root organisation of a name.
CREATE UNIQUE INDEX "orgs_root_name" ON "orgs" ("name") WHERE "parent_id" IS NULL;

ALTER TABLE "orgs"
  ADD CONSTRAINT "orgs_path_ends_with_itself" CHECK ("path"[cardinality("path")] = "id"),
  ADD CONSTRAINT "orgs_path_goes_through_parent" CHECK ("path"[cardinality("path") - 1] IS NOT DISTINCT FROM "parent_id"),
  ADD CONSTRAINT "orgs_depth" CHECK (cardinality("path") BETWEEN 1 AND 16);

ALTER TABLE "api_keys"
  ADD CONSTRAINT "api_keys_prefix_form" CHECK ("prefix" ~ '^[0-9A-Za-z]{12}$'),
  ADD CONSTRAINT "api_keys_secret_hash_is_sha256" CHECK (octet_length("secret_hash") = 32);
