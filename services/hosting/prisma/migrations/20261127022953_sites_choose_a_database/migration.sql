-- CreateEnum
CREATE TYPE "site_database" AS ENUM ('postgres', 'mysql');

-- AlterTable
ALTER TABLE "deleted_sites" ADD COLUMN     "database" "site_database";

-- AlterTable
ALTER TABLE "sites" ADD COLUMN     "database" "site_database";
