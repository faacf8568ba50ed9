-- CreateTable
CREATE TABLE "org_quotas" (
    "org_id" UUID NOT NULL,
    "mode" TEXT NOT NULL,
    "max_count" INTEGER NOT NULL,

    CONSTRAINT "org_quotas_pkey" PRIMARY KEY ("org_id","mode")
);
