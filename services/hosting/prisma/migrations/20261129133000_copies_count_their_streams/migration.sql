-- AlterTable
ALTER TABLE "offsite_copies" ADD COLUMN     "stream_bytes" BIGINT;
