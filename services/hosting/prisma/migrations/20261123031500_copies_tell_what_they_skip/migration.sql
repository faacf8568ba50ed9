-- AlterTable
ALTER TABLE "offsite_copies" ADD COLUMN     "skipped" JSONB;
