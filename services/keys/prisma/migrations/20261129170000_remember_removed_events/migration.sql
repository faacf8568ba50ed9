-- CreateTable
CREATE TABLE "removed_events" (
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "last_id" UUID NOT NULL,
    "seq" BIGINT NOT NULL,

    CONSTRAINT "removed_events_pkey" PRIMARY KEY ("org_id","mode")
);
