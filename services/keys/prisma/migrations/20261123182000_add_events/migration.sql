-- CreateTable
CREATE TABLE "events" (
    "id" UUID NOT NULL,
    "arrival" BIGSERIAL NOT NULL,
    "seq" BIGINT,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "type" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "actor_key_id" UUID,
    "workflow" JSONB,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "events_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "events_seq_idx" ON "events"("seq");

-- CreateIndex
CREATE INDEX "events_org_id_mode_seq_idx" ON "events"("org_id", "mode", "seq");

-- CreateIndex
CREATE INDEX "events_org_id_mode_type_seq_idx" ON "events"("org_id", "mode", "type", "seq");

-- CreateIndex
CREATE INDEX "events_org_id_mode_resource_seq_idx" ON "events"("org_id", "mode", "resource", "seq");

-- CreateIndex
CREATE INDEX "events_at_idx" ON "events"("at");

-- From here on by hand: what Prisma's schema cannot say.

CREATE SEQUENCE "event_seq" AS bigint;

-- The sequencer: few rows at any time.
CREATE INDEX "events_to_sequence" ON "events" ("arrival") WHERE "seq" IS NULL;
