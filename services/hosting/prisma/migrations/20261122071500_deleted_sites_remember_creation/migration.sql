-- AlterTable
ALTER TABLE "deleted_sites" ADD COLUMN     "site_created_at" TIMESTAMPTZ(3);
