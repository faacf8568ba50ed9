-- For the time at which a site came back, which decides how often it is asked whether it serves.
CREATE INDEX IF NOT EXISTS "deleted_sites_restored" ON "deleted_sites" ("site_id") WHERE "restored_at" IS NOT NULL;
