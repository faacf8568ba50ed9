-- CreateTable
CREATE TABLE "workflows" (
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "actor_key_id" UUID,
    "error" JSONB,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "workflows_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "workflows_org_id_mode_id_idx" ON "workflows"("org_id", "mode", "id");

-- CreateIndex
CREATE INDEX "workflows_org_id_mode_status_id_idx" ON "workflows"("org_id", "mode", "status", "id");

-- CreateIndex
CREATE INDEX "workflows_org_id_mode_kind_id_idx" ON "workflows"("org_id", "mode", "kind", "id");

-- CreateIndex
CREATE INDEX "workflows_org_id_mode_resource_id_idx" ON "workflows"("org_id", "mode", "resource", "id");

-- CreateIndex
CREATE INDEX "workflows_updated_at_idx" ON "workflows"("updated_at");

-- From here on by hand: what the events that are there have told.

INSERT INTO "workflows" ("id", "org_id", "mode", "kind", "status", "resource", "actor_key_id", "error", "updated_at")
SELECT DISTINCT ON ("workflow" ->> 'id') ("workflow" ->> 'id')::uuid, "org_id", "mode", "workflow" ->> 'kind',
  CASE "type" WHEN 'workflow.succeeded' THEN 'succeeded' WHEN 'workflow.failed' THEN 'failed' WHEN 'workflow.needs_attention' THEN 'needs_attention'
    ELSE 'unfinished' END,
  "resource", "actor_key_id", nullif("workflow" -> 'error', 'null'), "at"
FROM "events" WHERE jsonb_typeof("workflow") = 'object' AND "seq" IS NOT NULL
ORDER BY "workflow" ->> 'id', "type" IN ('workflow.succeeded', 'workflow.failed') DESC, "seq" DESC;
