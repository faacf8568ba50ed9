import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf, pageQuerySchema, text, timestampSchema, uuidSchema } from '../platform/values';

/** The audience of a column or card; `internal` is always the default. */
export const boardVisibilitySchema = z.enum(['internal', 'client']).meta({ id: 'AgencyBoardVisibility' });
export type BoardVisibility = z.infer<typeof boardVisibilitySchema>;

export const labelColourSchema = z
  .enum(['green', 'yellow', 'orange', 'red', 'purple', 'blue', 'sky', 'lime', 'pink', 'black'])
  .meta({ id: 'AgencyBoardLabelColour' });
export type LabelColour = z.infer<typeof labelColourSchema>;

export const boardLabelSchema = z
  .strictObject({
    id: uuidSchema.describe('The label.'),
    board_id: uuidSchema.describe('The board that it belongs to.'),
    name: z.string().describe('As the agency calls it.'),
    colour: labelColourSchema.describe('Of the label palette.'),
    position: z
      .int()
      .min(0)
      .describe(
        "Place in the board's label order: greater is later. The first label gets 0, each new one the next. " +
          "A deleted label's place stays free.",
      ),
  })
  .meta({ id: 'AgencyBoardLabel' });
export type BoardLabel = z.infer<typeof boardLabelSchema>;

export const boardColumnSchema = z
  .strictObject({
    id: uuidSchema.describe('The column.'),
    board_id: uuidSchema.describe('The board that it belongs to.'),
    name: z.string().describe('As the agency calls it.'),
    visibility: boardVisibilitySchema.describe(
      'Who may see it. A client sees a card only when its column is client visible too.',
    ),
    position: z
      .int()
      .min(0)
      .describe(
        'Place from the left: greater is further right. The first column gets 0, each new one the next. ' +
          "A deleted column's place stays free.",
      ),
  })
  .meta({ id: 'AgencyBoardColumn' });
export type BoardColumn = z.infer<typeof boardColumnSchema>;

export const boardSchema = z
  .strictObject({
    id: uuidSchema.describe('The board.'),
    name: z.string().describe('As the agency calls it.'),
    columns: z.array(boardColumnSchema).describe('From left to right.'),
    labels: z.array(boardLabelSchema).describe("In the board's label order. A client's view has none."),
    created_at: timestampSchema.describe('When it was created.'),
  })
  .meta({ id: 'AgencyBoard' });
export type Board = z.infer<typeof boardSchema>;

/** The reader for whom a board or card is shown. The view `client` shows nothing internal and no label. */
export const boardViewSchema = z.enum(['agency', 'client']);
export const viewQuery = {
  view: boardViewSchema.default('agency').meta({ description: 'client: what the client sees' }),
};

export const boardId = { schema: idSchema.describe('The board.'), notFound: 'board_not_found' } as const;
const columnId = { schema: idSchema.describe('The column.'), notFound: 'board_column_not_found' } as const;
const labelId = { schema: idSchema.describe('The label.'), notFound: 'board_label_not_found' } as const;
const tags = ['Agency boards'] as const;
const boards = '/v1/agency/boards';

export const listBoards = endpoint({
  id: 'listBoards',
  service: 'agency',
  method: 'GET',
  path: boards,
  summary: "The organisation's boards, newest first",
  permissions: ['agency.boards.view'],
  query: pageQuerySchema.extend(viewQuery),
  response: { status: 200, schema: pageOf(boardSchema) },
  problems: [],
  tags,
});

export const createBoard = endpoint({
  id: 'createBoard',
  service: 'agency',
  method: 'POST',
  path: boards,
  summary: 'Create a board without columns',
  permissions: ['agency.boards.manage'],
  body: z.strictObject({ name: text(200).describe('1 to 200 characters, none of them a control character.') }),
  example: { name: 'Relaunch' },
  response: { status: 201, schema: boardSchema },
  problems: [],
  tags,
});

export const getBoard = endpoint({
  id: 'getBoard',
  service: 'agency',
  method: 'GET',
  path: `${boards}/{boardId}`,
  summary: 'One board with its columns and labels',
  permissions: ['agency.boards.view'],
  params: { boardId },
  query: z.strictObject(viewQuery),
  response: { status: 200, schema: boardSchema },
  problems: [],
  tags,
});

/** A board with cards outside its archive is not deleted: only cards in the archive may be lost with their board. */
export const deleteBoard = endpoint({
  id: 'deleteBoard',
  service: 'agency',
  method: 'DELETE',
  path: `${boards}/{boardId}`,
  summary: 'Delete a board with its columns, labels and archive; one with cards on it is refused. There is no undo',
  permissions: ['agency.boards.manage'],
  params: { boardId },
  response: { status: 204 },
  problems: ['board_has_cards'],
  tags,
});

export const createBoardColumn = endpoint({
  id: 'createBoardColumn',
  service: 'agency',
  method: 'POST',
  path: `${boards}/{boardId}/columns`,
  summary: 'Add a column at the right',
  permissions: ['agency.boards.manage'],
  params: { boardId },
  body: z.strictObject({
    name: text(200).describe('1 to 200 characters, none of them a control character.'),
    visibility: boardVisibilitySchema.default('internal').describe('Who may see it.'),
  }),
  example: { name: 'In review', visibility: 'client' },
  response: { status: 201, schema: boardColumnSchema },
  problems: ['board_full'],
  tags,
});

export const getBoardColumn = endpoint({
  id: 'getBoardColumn',
  service: 'agency',
  method: 'GET',
  path: `${boards}/{boardId}/columns/{columnId}`,
  summary: 'One column',
  permissions: ['agency.boards.view'],
  params: { boardId, columnId },
  response: { status: 200, schema: boardColumnSchema },
  problems: [],
  tags,
});

export const deleteBoardColumn = endpoint({
  id: 'deleteBoardColumn',
  service: 'agency',
  method: 'DELETE',
  path: `${boards}/{boardId}/columns/{columnId}`,
  summary:
    'Delete a column without cards. ' +
    "Its archived cards stay in the archive, and return at the end of the board's first column",
  permissions: ['agency.boards.manage'],
  params: { boardId, columnId },
  response: { status: 204 },
  problems: ['column_has_cards', 'last_column_needed'],
  tags,
});

export const createBoardLabel = endpoint({
  id: 'createBoardLabel',
  service: 'agency',
  method: 'POST',
  path: `${boards}/{boardId}/labels`,
  summary: "Add a label at the end of the board's label order",
  permissions: ['agency.boards.manage'],
  params: { boardId },
  body: z.strictObject({
    name: text(100).describe('1 to 100 characters, none of them a control character.'),
    colour: labelColourSchema.describe('Of the label palette.'),
  }),
  example: { name: 'Urgent', colour: 'red' },
  response: { status: 201, schema: boardLabelSchema },
  problems: ['board_full'],
  tags,
});

export const getBoardLabel = endpoint({
  id: 'getBoardLabel',
  service: 'agency',
  method: 'GET',
  path: `${boards}/{boardId}/labels/{labelId}`,
  summary: 'One label',
  permissions: ['agency.boards.view'],
  params: { boardId, labelId },
  response: { status: 200, schema: boardLabelSchema },
  problems: [],
  tags,
});

export const deleteBoardLabel = endpoint({
  id: 'deleteBoardLabel',
  service: 'agency',
  method: 'DELETE',
  path: `${boards}/{boardId}/labels/{labelId}`,
  summary: 'Delete a label, and take it off the cards that wear it',
  permissions: ['agency.boards.manage'],
  params: { boardId, labelId },
  response: { status: 204 },
  problems: [],
  tags,
});
