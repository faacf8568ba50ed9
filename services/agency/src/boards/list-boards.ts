import { listBoards as endpoint } from '@drydock/contracts/agency/agency-boards';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { listBoards as listRows } from './board.store';
import { viewBoard } from './board.view';
import { ownerOf } from './require-board';

export const listBoards = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = {
        list: endpoint.id,
        keyId: caller.keyId,
        filter: `${caller.orgId}:${caller.mode}:${query.view}`,
      };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 });
      const give = {
        positionOf: ({ id }: { id: string }) => id,
        view: (row: (typeof rows)[number]) => viewBoard(row, query.view),
      };
      return { status: 200, body: pager.pageOf(rows, page, binding, now, give) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
