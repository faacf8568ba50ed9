-- AlterTable
ALTER TABLE "backups" ADD COLUMN "skipped_count" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "backup_skipped_paths" (
    "backup_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "path" TEXT NOT NULL,
    "reason" TEXT NOT NULL,

    CONSTRAINT "backup_skipped_paths_pkey" PRIMARY KEY ("backup_id","position")
);

-- AddForeignKey
ALTER TABLE "backup_skipped_paths" ADD CONSTRAINT "backup_skipped_paths_backup_id_fkey" FOREIGN KEY ("backup_id") REFERENCES "backups"("id") ON DELETE CASCADE ON UPDATE CASCADE;
