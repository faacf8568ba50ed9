-- CreateEnum
CREATE TYPE "mode" AS ENUM ('live', 'sandbox');

-- CreateEnum
CREATE TYPE "visibility" AS ENUM ('internal', 'client');

-- CreateEnum
CREATE TYPE "label_colour" AS ENUM ('green', 'yellow', 'orange', 'red', 'purple', 'blue', 'sky', 'lime', 'pink', 'black');

-- CreateTable
CREATE TABLE "audit_outbox" (
    "seq" BIGSERIAL NOT NULL,
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" TEXT NOT NULL,
    "actor_key_id" UUID,
    "action" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "workflow_id" UUID,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_outbox_pkey" PRIMARY KEY ("seq")
);

-- CreateTable
CREATE TABLE "boards" (
    "id" UUID NOT NULL,
    "org_id" UUID NOT NULL,
    "mode" "mode" NOT NULL,
    "name" TEXT NOT NULL,
    "column_count" INTEGER NOT NULL DEFAULT 0,
    "label_count" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "boards_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "board_columns" (
    "id" UUID NOT NULL,
    "board_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "visibility" "visibility" NOT NULL,
    "position" INTEGER NOT NULL,
    "card_count" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "board_columns_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "board_labels" (
    "id" UUID NOT NULL,
    "board_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "colour" "label_colour" NOT NULL,
    "position" INTEGER NOT NULL,

    CONSTRAINT "board_labels_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "cards" (
    "id" UUID NOT NULL,
    "board_id" UUID NOT NULL,
    "column_id" UUID NOT NULL,
    "title" TEXT NOT NULL,
    "body" TEXT NOT NULL,
    "visibility" "visibility" NOT NULL,
    "position" INTEGER NOT NULL,
    "assignee_id" TEXT,
    "due_at" TIMESTAMPTZ(3),
    "created_by_client" BOOLEAN NOT NULL DEFAULT false,
    "archived_at" TIMESTAMPTZ(3),
    "cover_colour" "label_colour",
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "cards_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "card_labels" (
    "card_id" UUID NOT NULL,
    "label_id" UUID NOT NULL,

    CONSTRAINT "card_labels_pkey" PRIMARY KEY ("card_id","label_id")
);

-- CreateTable
CREATE TABLE "idempotency_records" (
    "id" BYTEA NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "caller_key_id" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "claim" UUID NOT NULL,
    "lease_expires_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "accepted" JSONB,
    "status" INTEGER,
    "headers" JSONB,
    "body" TEXT,

    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "audit_outbox_id_key" ON "audit_outbox"("id");

-- CreateIndex
CREATE INDEX "boards_org_id_mode_id_idx" ON "boards"("org_id", "mode", "id");

-- CreateIndex
CREATE UNIQUE INDEX "board_columns_board_id_position_key" ON "board_columns"("board_id", "position");

-- CreateIndex
CREATE UNIQUE INDEX "board_labels_board_id_position_key" ON "board_labels"("board_id", "position");

-- CreateIndex
CREATE INDEX "cards_board_id_id_idx" ON "cards"("board_id", "id");

-- CreateIndex
CREATE INDEX "card_labels_label_id_idx" ON "card_labels"("label_id");

-- CreateIndex
CREATE INDEX "idempotency_records_created_at_idx" ON "idempotency_records"("created_at");

-- AddForeignKey
ALTER TABLE "board_columns" ADD CONSTRAINT "board_columns_board_id_fkey" FOREIGN KEY ("board_id") REFERENCES "boards"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "board_labels" ADD CONSTRAINT "board_labels_board_id_fkey" FOREIGN KEY ("board_id") REFERENCES "boards"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "cards" ADD CONSTRAINT "cards_board_id_fkey" FOREIGN KEY ("board_id") REFERENCES "boards"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "card_labels" ADD CONSTRAINT "card_labels_card_id_fkey" FOREIGN KEY ("card_id") REFERENCES "cards"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "card_labels" ADD CONSTRAINT "card_labels_label_id_fkey" FOREIGN KEY ("label_id") REFERENCES "board_labels"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- From here on by hand: what Prisma's schema cannot say.

-- No two cards of a column at one place. Checked at the commit, since cards that move up pass through the places of others. Finds the cards of a column too.
ALTER TABLE "cards"
  ADD CONSTRAINT "cards_place" EXCLUDE USING btree ("column_id" WITH =, "position" WITH =) WHERE ("archived_at" IS NULL) DEFERRABLE INITIALLY DEFERRED,
  ADD CONSTRAINT "cards_position_counts_from_zero" CHECK ("position" >= 0);

ALTER TABLE "board_columns" ADD CONSTRAINT "board_columns_card_count" CHECK ("card_count" >= 0);
