-- AlterTable
ALTER TABLE "backups" ADD COLUMN     "http_status" INTEGER,
ADD COLUMN     "sql_works" BOOLEAN;

-- AlterTable
ALTER TABLE "offsite_copies" ADD COLUMN     "http_status" INTEGER,
ADD COLUMN     "sql_works" BOOLEAN;
