-- AlterTable
ALTER TABLE "webhooks" ADD COLUMN "oldest_generation" INTEGER;
