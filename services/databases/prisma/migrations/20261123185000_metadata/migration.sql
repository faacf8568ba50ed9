-- AlterTable
ALTER TABLE "managed_databases" ADD COLUMN     "metadata" JSONB NOT NULL DEFAULT '{}';
