-- AlterTable
ALTER TABLE "sites" ADD COLUMN     "metadata" JSONB NOT NULL DEFAULT '{}';

-- AlterTable
ALTER TABLE "deleted_sites" ADD COLUMN     "metadata" JSONB NOT NULL DEFAULT '{}';
