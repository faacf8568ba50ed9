-- Standard names for two counters of @drydock/workflow. Rows keep what they count.
ALTER TABLE "workflow" RENAME COLUMN "claims_without_word" TO "consecutive_crashes";
ALTER TABLE "workflow" RENAME COLUMN "settle_failures" TO "end_failures";
ALTER TABLE "workflow_schedule" RENAME CONSTRAINT "workflow_schedule_one_rhythm" TO "workflow_schedule_one_interval";

-- The old counter included the claim under way. A crash counts from the next claim on.
UPDATE "workflow" SET "consecutive_crashes" = "consecutive_crashes" - 1
WHERE "consecutive_crashes" > 0 AND "status" IN ('queued', 'running', 'needs_attention');
