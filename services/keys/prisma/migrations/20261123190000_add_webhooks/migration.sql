-- CreateEnum
CREATE TYPE "webhook_delivery_status" AS ENUM ('pending', 'delivered', 'failed');

-- CreateTable
CREATE TABLE "webhooks" (
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "url" TEXT NOT NULL,
    "event_types" TEXT[],
    "description" TEXT,
    "generation" INTEGER NOT NULL DEFAULT 1,
    "previous_until" TIMESTAMPTZ(3),
    "disabled_at" TIMESTAMPTZ(3),
    "disabled_reason" TEXT,
    "failing_since" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "webhooks_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_deliveries" (
    "id" UUID NOT NULL,
    "webhook_id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "event_id" UUID NOT NULL,
    "event_seq" BIGINT NOT NULL,
    "resource" TEXT NOT NULL,
    "status" "webhook_delivery_status" NOT NULL DEFAULT 'pending',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "attempts_before" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3) NOT NULL,
    "last_attempt_at" TIMESTAMPTZ(3),
    "last_status" INTEGER,
    "last_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "webhooks_org_id_mode_id_idx" ON "webhooks"("org_id", "mode", "id");

-- CreateIndex
CREATE INDEX "webhook_deliveries_webhook_id_event_seq_idx" ON "webhook_deliveries"("webhook_id", "event_seq");

-- CreateIndex
CREATE UNIQUE INDEX "webhook_deliveries_event_id_webhook_id_key" ON "webhook_deliveries"("event_id", "webhook_id");

-- AddForeignKey
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_webhook_id_fkey" FOREIGN KEY ("webhook_id") REFERENCES "webhooks"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_event_id_fkey" FOREIGN KEY ("event_id") REFERENCES "events"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- From here on by hand: what Prisma's schema cannot say.

-- The sender: each organisation's oldest due deliveries. The chain of a resource: who is next.
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" ("org_id", "due_at") WHERE "status" = 'pending';
CREATE INDEX "webhook_deliveries_chain" ON "webhook_deliveries" ("webhook_id", "resource", "event_seq") WHERE "status" = 'pending';

ALTER TABLE "webhooks"
  ADD CONSTRAINT "webhooks_disabled_with_reason" CHECK (("disabled_at" IS NULL) = ("disabled_reason" IS NULL)),
  ADD CONSTRAINT "webhooks_disabled_reason_known" CHECK ("disabled_reason" IN ('customer', 'failures', 'gone'));

-- Organisations that mint keys themselves may have webhooks; which of their keys may is for them to say.
UPDATE "orgs" SET "permissions" = array_append("permissions", 'webhooks.manage')
WHERE 'apikeys.manage' = ANY ("permissions") AND NOT 'webhooks.manage' = ANY ("permissions");
