-- AlterTable
ALTER TABLE "sites" ADD COLUMN     "serve_check_at" TIMESTAMPTZ(3);

-- CreateIndex
CREATE INDEX "sites_serve_check_at_idx" ON "sites"("serve_check_at");
