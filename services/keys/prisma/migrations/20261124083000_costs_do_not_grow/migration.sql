-- From here on by hand: what Prisma's schema cannot say. docs/guides/upgrading.md says how it is made beforehand without keeping anybody waiting.

-- The purge: what waits for staff stays, however old.
CREATE INDEX IF NOT EXISTS "workflows_over" ON "workflows" ("updated_at") WHERE "status" IN ('succeeded', 'failed');
