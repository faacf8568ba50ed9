-- CreateEnum
CREATE TYPE "vendor_order_state" AS ENUM ('sent', 'withdrawn');

-- AlterTable
ALTER TABLE "deleted_sites" ADD COLUMN     "data_removed_at" TIMESTAMPTZ(3);

-- CreateTable
CREATE TABLE "vendor_packages" (
    "site_id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "package_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "vendor_packages_pkey" PRIMARY KEY ("site_id")
);

-- CreateTable
CREATE TABLE "vendor_orders" (
    "workflow_id" UUID NOT NULL,
    "state" "vendor_order_state" NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT "vendor_orders_pkey" PRIMARY KEY ("workflow_id")
);

-- What the Prisma schema cannot say

-- Two sites are never one package.
CREATE UNIQUE INDEX "vendor_packages_package" ON "vendor_packages" ("mode", "package_id");

-- The sweep of the purge: what has still to go.
CREATE INDEX "deleted_sites_unpurged" ON "deleted_sites" ("id") WHERE "restored_at" IS NULL AND "data_removed_at" IS NULL;

-- What is brought back has its data, and what was purged does not come back.
ALTER TABLE "deleted_sites"
  ADD CONSTRAINT "deleted_sites_purged_for_good" CHECK ("purged_at" IS NULL OR "restored_at" IS NULL),
  ADD CONSTRAINT "deleted_sites_removed_when_purged" CHECK ("data_removed_at" IS NULL OR "purged_at" IS NOT NULL);
