/**
 * Owners who have taken rights from themselves.
 *
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { type Customer, createCustomer, cutOver, endMove, startTwoServers, type TwoServers } from '../../test/two-servers';
import { runSql } from '../testing/run-sql';
import { catchUp } from './catch-up';
import { trySchema } from './check/try-schema';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

/** The rights of the owner and of everybody else. MAINTAIN, which 17 has brought, nobody could take from itself before. */
const rightsOf = (url: string): Promise<unknown[]> =>
  runSql(
    url,
    `select c.relname as name, array(select a::text from unnest(c.relacl) a where a::text !~ '=m/' order by 1) as rights from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'S') order by 1`,
  );

test.each(['logical', 'offline'] as const)(
  'an owner who may do nothing with its own tables any more is upgraded (%s), and may do as little afterwards',
  async (path) => {
    const name = `modest_${path}`;
    const made: Customer = await createCustomer(
      servers,
      name,
      'create table customers (id serial primary key, name text)',
      'create table orders (id int primary key, customer int references customers, unique (id, customer))',
      'create unlogged table visits (customer int references customers)',
      "insert into customers (name) values ('a'), ('b')",
      'insert into orders values (1, 1), (2, 2)',
      `revoke all on customers, orders, visits, customers_id_seq from ${name}`,
      `grant select (name) on customers to ${name}; grant select on orders to public`,
    );
    const move = { ...made, path };
    const before = await rightsOf(move.ownUrl);
    expect(await trySchema({ ...move, secret: randomBytes(32).toString('hex'), fence: '0' })).toEqual([]);
    await copySchema(move);
    await copyData(move);
    if (path === 'logical') await catchUp(move);
    await cutOver(move);
    expect(await rightsOf(move.ownTargetUrl)).toEqual(before);
    expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal', tables: 3 });
    await expect(runSql(move.ownTargetUrl, 'insert into orders values (3, 1)')).rejects.toThrow('permission denied for table orders');
    expect(await runSql(move.ownTargetUrl, "select count(*)::int as n from pg_constraint where contype = 'f'")).toEqual([{ n: 2 }]);
    await endMove(move);
  },
);
