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
