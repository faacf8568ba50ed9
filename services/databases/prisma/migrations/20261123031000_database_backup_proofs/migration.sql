-- AlterTable
ALTER TABLE "database_backups" ADD COLUMN     "proof" JSONB;
