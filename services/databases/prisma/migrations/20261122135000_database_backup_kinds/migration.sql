-- CreateEnum
CREATE TYPE "backup_kind" AS ENUM ('on_demand', 'upgrade', 'pre_restore');

-- AlterTable
ALTER TABLE "database_backups" ADD COLUMN     "kind" "backup_kind" NOT NULL DEFAULT 'on_demand',
ADD COLUMN     "raw_bytes" BIGINT;
