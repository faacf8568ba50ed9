-- AlterTable
ALTER TABLE "servers" ADD COLUMN "has_ssh_keys" BOOLEAN NOT NULL DEFAULT false;
