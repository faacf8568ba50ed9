-- AlterTable
ALTER TABLE "deleted_sites" ADD COLUMN     "domain_proven_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "sites" ADD COLUMN     "domain_proven_at" TIMESTAMPTZ(3);

-- Who had a domain before proofs were asked for is taken to have proven it.
UPDATE "sites" SET "domain_proven_at" = "created_at";
UPDATE "deleted_sites" SET "domain_proven_at" = "deleted_at";

-- Whoever has proven a domain has it alone; who only says so keeps nobody else from it.
DROP INDEX "sites_domain_held";
CREATE UNIQUE INDEX "sites_domain_proven" ON "sites" ("mode", "primary_domain") WHERE "holds_domain" AND "domain_proven_at" IS NOT NULL;
CREATE UNIQUE INDEX "sites_domain_claimed" ON "sites" ("mode", "org_id", "primary_domain") WHERE "holds_domain";
