-- AlterTable
ALTER TABLE "servers" ADD COLUMN     "metadata" JSONB NOT NULL DEFAULT '{}';
