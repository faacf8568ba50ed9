import type { createCard as endpoint } from '@drydock/contracts/agency/agency-cards';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { holdBoard } from '../boards/require-board';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { cardPath, noteChange } from '../context/note-change';
import { insertCard, wearLabels } from './card.store';
import { viewCard } from './card.view';
import { takeEnd } from './place.store';
import { chooseLabels, readCard } from './require-card';

export const createCard = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller, now } = request;
      const boardId = await holdBoard(tx, request, 'change cards');
      const labelIds = await chooseLabels(tx, boardId, body.label_ids);
      const place = await takeEnd(tx, boardId, body.column_id);
      if (place === null) throw problem('column_not_found');
      const cardId = uuidv7();
      await insertCard(tx, {
        id: cardId,
        boardId,
        ...place,
        title: body.title,
        body: body.body,
        visibility: body.visibility,
        assigneeId: body.assignee_id,
        dueAt: body.due_at === null ? null : new Date(body.due_at),
        coverColour: body.cover_colour === '' ? null : body.cover_colour,
        createdAt: now,
        updatedAt: now,
      });
      if (labelIds.length > 0) await wearLabels(tx, cardId, labelIds);
      const path = cardPath(boardId, cardId);
      await noteChange(context, tx, caller, 'card.create', path);
      return {
        status: 201,
        headers: { location: path },
        body: viewCard(await readCard(tx, { boardId, cardId }), 'agency'),
      };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
