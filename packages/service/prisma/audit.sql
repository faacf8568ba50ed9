-- Copied from packages/service/prisma; what the Prisma fragment beside it makes, for a migration or a test database.
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
CREATE UNIQUE INDEX "audit_outbox_id_key" ON "audit_outbox"("id");
