-- Copied from packages/service/prisma; what the Prisma fragment beside it makes, for a migration or a test database.
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
CREATE INDEX "idempotency_records_created_at_idx" ON "idempotency_records"("created_at");
