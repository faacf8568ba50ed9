-- CreateEnum
CREATE TYPE "storage_state" AS ENUM ('ok', 'nearly_full', 'full', 'closed');

-- AlterTable
ALTER TABLE "sites" ADD COLUMN     "storage_state" "storage_state" NOT NULL DEFAULT 'ok';

-- From here on by hand: what Prisma's schema cannot say.

-- Those that are looked at though the agent may report nothing of them.
CREATE INDEX "sites_filling" ON "sites" ("id") WHERE "storage_state" <> 'ok';
