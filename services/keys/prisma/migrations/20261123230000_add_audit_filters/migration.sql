-- CreateIndex
CREATE INDEX "audit_log_org_id_mode_actor_key_id_id_idx" ON "audit_log"("org_id", "mode", "actor_key_id", "id");

-- CreateIndex
CREATE INDEX "audit_log_org_id_mode_action_id_idx" ON "audit_log"("org_id", "mode", "action", "id");

-- CreateIndex
CREATE INDEX "audit_log_org_id_mode_target_id_idx" ON "audit_log"("org_id", "mode", "target", "id");
