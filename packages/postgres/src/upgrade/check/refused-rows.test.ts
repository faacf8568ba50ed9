/**
 * The preflight's findings about rows agree with the upgrade's errors.
 *
 * @tier long
 * @processes
 */
import { changedFunctions, define } from '../../../test/changed-functions';
import { createCustomer, endMove, startTwoServers, type TwoServers } from '../../../test/two-servers';
import { runSql } from '../../testing/run-sql';
import { copyData } from '../copy/copy-data';
import { copySchema } from '../copy/copy-schema';
import { withDatabase } from '../session';
import { askRows, type RowLimits } from './ask-rows';

const unhurried: RowLimits = { statementMs: 600_000, totalMs: 3_600_000, tempFileKb: 1_048_576 };

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

test.each(changedFunctions)(
  '$name: rows that the preflight reports end an upgrade with a permanent error',
  async ({ name, made, later, detail }) => {
    const move = await createCustomer(servers, name, define('$1'), ...made, define(later));
    const findings = await askRows({ url: move.oldUrl, databaseName: name, toMajor: 18, limits: unhurried });
    expect(findings).toEqual([{ level: 'ERROR', code: 'rows_refused', detail: expect.stringMatching(detail) }]);
    await copySchema(move);
    await expect(copyData(move)).rejects.toMatchObject({ isPermanent: true });
    await endMove(move);
  },
);

test('rows that fit the changed functions are upgraded, whatever value the old functions had', async () => {
  const made = changedFunctions.filter(({ name }) => ['unique_index', 'exclusion_of_ranges'].includes(name));
  for (const { name, made: statements } of made) {
    const move = await createCustomer(servers, `fits_${name}`, define('$1'), ...statements, define('$1 + 10'));
    expect(
      await askRows({ url: move.oldUrl, databaseName: move.databaseName, toMajor: 18, limits: unhurried }),
    ).toEqual([]);
    await copySchema(move);
    await copyData(move);
    expect(
      await runSql(
        withDatabase(servers.target.adminUrl, move.databaseName),
        'select count(*)::int > 1 as is_there from public.t',
      ),
    ).toEqual([{ is_there: true }]);
    await endMove(move);
  }
});
