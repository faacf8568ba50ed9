/**
 * @tier long
 * @processes
 */
import { isChaos } from '@drydock/testing/scope';
import { createCustomer, cutOver, endMove, startTwoServers, type TwoServers } from '../../test/two-servers';
import { asReadAgain, listRealSchemas, missingSchema, statementsOf } from '../testing/schema-corpus';
import { catchUp } from './bring-level';
import { trySchema } from './check/try-schema';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { finishTarget } from './finish';
import { withDatabase } from './session';

/** Only the chaos run uses all schemas, because an upgrade takes seconds. */
const schemas = listRealSchemas().slice(0, isChaos ? undefined : 2);

/** Since 18, NOT NULL is a constraint with a name. A dump contains the name only if it is not the default one. */
const notNullName = / CONSTRAINT \S+ NOT NULL/g;

async function presentStatements(adminUrl: string, database: string): Promise<string[]> {
  const statements = await statementsOf(withDatabase(adminUrl, database), database);
  return statements.map((text) => asReadAgain(text.replace(notNullName, ' NOT NULL'))).sort();
}

const isHere = schemas.length > 0;

(isHere ? describe : describe.skip).each([
  [16, 17],
  [17, 18],
] as const)('from %i to %i', (oldMajor, targetMajor) => {
  let servers: TwoServers;
  beforeAll(async () => {
    servers = await startTwoServers(undefined, [oldMajor, targetMajor]);
  });
  afterAll(() => servers.stop());

  test.each(
    (isHere ? schemas : [missingSchema]).map(({ name, sql }, index) => ({ name, sql, database: `real_${index}` })),
  )('the schema of $name is upgraded with every object and its rows', async ({ sql, database }) => {
    const move = await createCustomer(servers, database, sql);
    expect(await trySchema(move)).toEqual([]);
    const before = await presentStatements(servers.old.adminUrl, database);
    for (const stage of [copySchema, copyData, catchUp]) await stage(move);
    await cutOver(move);
    expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal', names: [] });
    await finishTarget(move);
    await endMove(move);
    expect(await presentStatements(servers.target.adminUrl, database)).toEqual(before);
  });
});
