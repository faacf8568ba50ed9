import { conformanceChecks, conformanceLimitMs } from '@drydock/service/testing/conformance';
import type { ConformanceWorld } from '@drydock/service/testing/conformance-rule';
import { callerOf, type ServiceApi, startServiceApi } from '@drydock/service/testing/service-api';
import { agency } from '../test/agency-api';

const owner = callerOf();
let api: ServiceApi;
let world: ConformanceWorld;
beforeAll(async () => {
  api = await startServiceApi(agency, owner);
  const make = async (caller: typeof owner, path: string, body: object): Promise<string> =>
    ((await api.call('POST', path, { caller, body })).json as { id: string }).id;
  world = {
    call: api.call,
    owner,
    strangers: [callerOf(), { ...owner, mode: 'sandbox' }],
    makeThings: async (caller, { id }) => {
      const boardId = await make(caller, '/v1/agency/boards', { name: 'Board' });
      const board = `/v1/agency/boards/${boardId}`;
      const columnId = await make(caller, `${board}/columns`, { name: 'Column' });
      const labelId = await make(caller, `${board}/labels`, { name: 'Label', colour: 'red' });
      const cardId = await make(caller, `${board}/cards`, { column_id: columnId, title: 'Card' });
      // The card is archived, because only a board or column without cards can be deleted. A second column exists,
      // because an archived card needs a column to return to.
      if (id === 'deleteBoard' || id === 'deleteBoardColumn') {
        await make(caller, `${board}/columns`, { name: 'Another' });
        await make(caller, `${board}/cards/${cardId}/archive`, {});
      }
      return { params: { boardId, columnId, labelId, cardId }, fields: { column_id: columnId } };
    },
    cannotSucceed: {},
  };
});
afterAll(() => api.close());

describe('every operation of agency', () => {
  // Each check contains its own expectations.
  // oxlint-disable-next-line jest/expect-expect
  it.each(conformanceChecks('agency').map((check) => [check.name, check] as const))(
    '%s',
    (_name, check) => check.run(world),
    conformanceLimitMs,
  );
});
