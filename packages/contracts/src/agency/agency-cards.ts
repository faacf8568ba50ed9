import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import {
  exampleId,
  idSchema,
  pageOf,
  pageQuerySchema,
  paragraphs,
  text,
  timestampSchema,
  uuidSchema,
} from '../platform/values';
import { boardId, boardLabelSchema, boardVisibilitySchema, labelColourSchema, viewQuery } from './agency-boards';

const coverColourSchema = z.union(
  [labelColourSchema, z.literal('')],
  `must be one of ${labelColourSchema.options.join(', ')}, or empty for none`,
);

/**
 * The card of interface.md 2.7. `position` counts the cards of the column from 0. An archived card keeps its last
 * position.
 */
export const cardSchema = z
  .strictObject({
    id: uuidSchema.describe('The card.'),
    board_id: uuidSchema.describe('The board that it is on.'),
    column_id: uuidSchema.describe('The column that it is in, or was in when it was archived.'),
    title: z.string().describe('One line.'),
    body: z.string().describe('Text with line breaks; empty where none was given.'),
    visibility: boardVisibilitySchema.describe(
      'Who may see it. A client sees a card only when its column is client visible too.',
    ),
    position: z.int().min(0).describe('Place in the column, counted from 0. That of an archived card is where it was.'),
    assignee_id: z.string().nullable().describe("Whoever works on it, in the agency's own words; null for nobody."),
    due_at: timestampSchema.nullable().describe('When it is due; null for never.'),
    created_by_client: z.boolean().describe('Whether the client raised it.'),
    archived_at: timestampSchema.nullable().describe('When it was archived; null while it is on the board.'),
    cover_colour: coverColourSchema.describe('Colour band across its top; empty for none.'),
    labels: z.array(boardLabelSchema).describe("In the board's label order. A client's view has none."),
    created_at: timestampSchema.describe('When it was created.'),
    updated_at: timestampSchema.describe('When it was last changed.'),
  })
  .meta({ id: 'AgencyBoardCard' });
export type Card = z.infer<typeof cardSchema>;

export const cardLabelsMax = 50;

const earliestMs = Date.parse('0001-01-01T00:00:00Z');
const latestMs = Date.parse('9999-12-31T23:59:59.999Z');
/** Tells whether the time has a year of four digits in UTC: Postgres has no year 0, and RFC 3339 has no year 10000. */
const isInFourDigitYears = (time: string): boolean => {
  const ms = Date.parse(time);
  return ms >= earliestMs && ms <= latestMs;
};
const dueSchema = z.iso
  .datetime({ offset: true })
  .refine(isInFourDigitYears, 'must be in the years 1 to 9999')
  .meta({ description: 'RFC 3339, in any offset; answered in UTC' });
const fields = {
  title: text(500).describe('One line of 1 to 500 characters.'),
  body: paragraphs(20_000).describe('Text of up to 20,000 characters, line breaks included.'),
  visibility: boardVisibilitySchema.describe('Who may see it.'),
  assignee_id: text(200)
    .nullable()
    .describe("Whoever works on it, in the agency's own words of up to 200 characters; null for nobody."),
  due_at: dueSchema.nullable().describe('When it is due, as RFC 3339 in any offset; answered in UTC. Null for never.'),
  cover_colour: coverColourSchema.describe('Colour band across its top; empty for none.'),
  label_ids: z.array(idSchema).max(cardLabelsMax).describe('Labels of the board, up to 50.'),
};

const newCardSchema = z.strictObject({
  column_id: idSchema.describe('A column of the board. The card goes to its end.'),
  title: fields.title,
  body: fields.body.default(''),
  visibility: fields.visibility.default('internal'),
  assignee_id: fields.assignee_id.default(null),
  due_at: fields.due_at.default(null),
  cover_colour: fields.cover_colour.default(''),
  label_ids: fields.label_ids.default([]),
});

const changeCardSchema = z
  .strictObject({
    column_id: idSchema.describe('A column of the board, to move the card to.'),
    ...fields,
    position: z
      .int()
      .min(0)
      .max(1_000_000)
      .describe('Place in the column, counted from 0; one behind the last card is the end.'),
  })
  .partial();

const cardId = { schema: idSchema.describe('The card.'), notFound: 'card_not_found' } as const;
const tags = ['Agency boards'] as const;
const cards = '/v1/agency/boards/{boardId}/cards';

export const listCards = endpoint({
  id: 'listCards',
  service: 'agency',
  method: 'GET',
  path: cards,
  summary: "The board's cards, newest first: those on it, or with archived=true those in the archive",
  permissions: ['agency.boards.view'],
  params: { boardId },
  query: pageQuerySchema.extend({
    ...viewQuery,
    archived: z.enum(['true', 'false']).default('false').describe('true lists the archive in place of the board.'),
  }),
  response: { status: 200, schema: pageOf(cardSchema) },
  problems: [],
  tags,
});

export const createCard = endpoint({
  id: 'createCard',
  service: 'agency',
  method: 'POST',
  path: cards,
  summary: 'Put a card at the end of a column',
  permissions: ['agency.boards.manage'],
  params: { boardId },
  body: newCardSchema,
  example: { column_id: exampleId, title: 'New front page', due_at: '2026-12-01T09:00:00Z' },
  response: { status: 201, schema: cardSchema },
  problems: ['column_not_found', 'label_not_found'],
  tags,
});

export const getCard = endpoint({
  id: 'getCard',
  service: 'agency',
  method: 'GET',
  path: `${cards}/{cardId}`,
  summary: 'One card, on the board or in its archive',
  permissions: ['agency.boards.view'],
  params: { boardId, cardId },
  query: z.strictObject(viewQuery),
  response: { status: 200, schema: cardSchema },
  problems: [],
  tags,
});

export const updateCard = endpoint({
  id: 'updateCard',
  service: 'agency',
  method: 'PATCH',
  path: `${cards}/{cardId}`,
  summary: 'Edit a card, or move it: a position behind the last one is the end of the column',
  permissions: ['agency.boards.manage'],
  params: { boardId, cardId },
  body: changeCardSchema,
  example: { title: 'New front page, second draft', position: 0 },
  response: { status: 200, schema: cardSchema },
  problems: ['column_not_found', 'label_not_found', 'card_archived'],
  tags,
});

export const archiveCard = endpoint({
  id: 'archiveCard',
  service: 'agency',
  method: 'POST',
  path: `${cards}/{cardId}/archive`,
  summary: 'Put a card into the archive; the cards behind it move up. One that is there already is answered unchanged',
  permissions: ['agency.boards.manage'],
  params: { boardId, cardId },
  response: { status: 200, schema: cardSchema },
  problems: [],
  tags,
});

/**
 * Endpoint 9 of interface.md. The specification gives it no 422 and no 429. So it ignores an Idempotency-Key and
 * unknown query parameters, and counts against no quota.
 */
export const restoreCard = endpoint({
  id: 'restoreCard',
  service: 'agency',
  method: 'POST',
  path: `${cards}/{cardId}/restore`,
  summary: 'Take a card out of the archive, to the end of its column. One that is not archived is answered unchanged',
  permissions: ['agency.boards.manage'],
  params: { boardId, cardId },
  response: { status: 200, schema: cardSchema },
  problems: [],
  quota: 'exempt',
  idempotency: 'ignored',
  undeclaredQuery: 'ignored',
  tags,
});
