/**
 * @tier long
 * @processes
 */
import { randomUUID } from 'node:crypto';
import { isChaos } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import type pg from 'pg';
import { z } from 'zod';
import {
  type Customer,
  createCustomer,
  cutOver,
  endMove,
  startTwoServers,
  type TwoServers,
} from '../../test/two-servers';
import { dumpDatabase } from '../dump/dump-database';
import type { Section } from '../dump/dump-format';
import { loadDatabase } from '../load/load-database';
import { dropTransferRole, loginUrl, makeLoader, makeReader } from '../session/transfer-roles';
import { Canaries } from '../testing/canaries';
import { hostileSchema, hostileSettings, trapMark, trapStatements } from '../testing/hostile-schemas';
import { runSql, withClient } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { askRows } from './check/ask-rows';
import { checkUpgrade } from './check/prechecks';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { ownObjects } from './copy/own-objects';
import { finishTarget } from './finish';
import { withDatabase } from './session';

/*
 * Generated schemas of a hostile customer go through a backup, its restore and an upgrade. Their code records the
 * acting role, and tries to read and write everything. Canaries show whether the code did anything that it had no right
 * to do.
 */

const { seed, count } = sampleOf('hostile schemas', { inCi: 12, inChaos: 500 });
const perDatabase = isChaos ? 25 : 6;
const batches = Array.from({ length: Math.ceil(count / perDatabase) }, (_, number) => number);

let servers: TwoServers;
let canaries: Canaries;
/** The log of each server, by major. */
const logs = new Map<number, string>();
beforeAll(async () => {
  servers = await startTwoServers((major, text) => void logs.set(major, (logs.get(major) ?? '') + text));
  canaries = await Canaries.start([servers.old.adminUrl, servers.target.adminUrl]);
});
afterAll(async () => {
  await canaries?.stop();
  await servers?.stop();
});

type Sprung = z.infer<typeof sprungSchema>;

const sprungSchema = z.object({
  how: z.string(),
  acting: z.string(),
  fallen: z.string(),
  session: z.string(),
  powerful: z.boolean(),
});
const trapLine = new RegExp(`${trapMark}(\\{.*\\})`, 'g');

/** Returns the traps' records on both servers since the last call, with the log's text. */
async function takeNotes(): Promise<{ sprung: Sprung[]; text: string }> {
  const mark = `mark ${randomUUID()}`;
  for (const { adminUrl } of [servers.old, servers.target])
    await runSql(adminUrl, `do $$ begin raise log '${mark}'; end $$`);
  await until(() => Promise.resolve([16, 18].every((major) => logs.get(major)?.includes(`LOG:  ${mark}`))), {
    timeoutMs: 10_000,
  });
  const text = [...logs.values()].join('\n');
  logs.clear();
  return { sprung: [...text.matchAll(trapLine)].map(([, note]) => sprungSchema.parse(JSON.parse(note ?? ''))), text };
}

/**
 * Returns the records in which a role is powerful, or is not the customer, the owner of the copy, or a loader. A loader
 * can act only as the customer or as the owner of the copy.
 */
function strangersIn(seen: readonly Sprung[], owner: string): Sprung[] {
  const isExpected = (role: string): boolean =>
    role === owner || role === `${owner}_copy` || /^ld_[0-9a-f]{24}$/.test(role);
  return seen.filter(({ acting, fallen, powerful }) => powerful || !isExpected(acting) || !isExpected(fallen));
}

/** Returns the customer's login, which overrides the customer's own session settings. */
const owners = (url: string): pg.ClientConfig => ({
  connectionString: url,
  options:
    '-c search_path= -c role=none -c local_preload_libraries= -c default_transaction_read_only=off -c lock_timeout=2s',
});

async function makeHostile(batch: number): Promise<Customer> {
  const name = `hostile${batch}`;
  const move = await createCustomer(servers, name);
  const random = new SeededRandom(seed + batch);
  const traps = trapStatements({
    owner: name,
    file: canaries.file,
    pid: canaries.pid,
    applicationName: canaries.applicationName,
  });
  await runSql(servers.old.adminUrl, `revoke connect on database ${name} from public`);
  await withClient(owners(move.ownUrl), async (client) => {
    for (const trap of traps) await client.query(trap);
    for (let number = 0; number < perDatabase && batch * perDatabase + number < count; number += 1) {
      for (const statement of hostileSchema(seed, batch * perDatabase + number).statements)
        await client.query(statement).catch(() => undefined);
    }
    await client.query('create sequence public.swapped');
    await client.query('create table public.exchanged (a int)');
    for (const setting of hostileSettings(random, { owner: name, database: name }))
      await client.query(setting).catch(() => undefined);
  });
  return { ...move, path: batch % 2 === 0 ? 'logical' : 'offline' };
}

/** Swaps a sequence and a table with views that call the trap, while `work` runs. */
async function whileSwapping(move: Customer, work: () => Promise<void>): Promise<void> {
  let isOver = false;
  const swap = async (client: pg.Client): Promise<void> => {
    const turns = [
      [
        'drop sequence public.swapped',
        "create view public.swapped as select 1::bigint as last_value, public.spring('swapped') as is_called",
      ],
      ['drop view public.swapped', 'create sequence public.swapped'],
      ['drop table public.exchanged', "create view public.exchanged as select public.spring('exchanged')::int as a"],
      ['drop view public.exchanged', 'create table public.exchanged (a int)'],
    ];
    while (!isOver) for (const turn of turns) for (const sql of turn) await client.query(sql).catch(() => undefined);
    for (const turn of [turns[1], turns[3]])
      for (const sql of turn ?? []) await client.query(sql).catch(() => undefined);
  };
  const swapping = withClient(owners(move.ownUrl), swap);
  try {
    await work();
  } finally {
    isOver = true;
    await swapping;
  }
}

async function* watched(sections: AsyncIterable<Section>, seen: { secret: boolean }): AsyncGenerator<Section> {
  for await (const section of sections) {
    const content = async function* (): AsyncGenerator<Buffer> {
      for await (const part of section.content) {
        if (canaries.isIn(part.toString('latin1'))) seen.secret = true;
        yield part;
      }
    };
    yield { path: section.path, content: content() };
  }
}

/**
 * Backs the database up, restores it into a second database as an agent does, and drops the second one. With
 * `isDrained`, the backup is only read.
 */
async function backUpAndRestore({ databaseName: name }: Customer, isDrained: boolean): Promise<void> {
  const copy = `${name}_copy`;
  const { adminUrl } = servers.old;
  await withClient(adminUrl, async (admin) => {
    const reader = await makeReader({ admin, database: name, tag: 'test' });
    const seen = { secret: false };
    const sections = watched(dumpDatabase({ url: loginUrl(adminUrl, reader, name) }), seen);
    try {
      if (isDrained) {
        for await (const { content } of sections) for await (const part of content) void part;
        return;
      }
      // Like the role of a site, this role cannot create roles.
      await admin.query(`create role ${copy}`);
      await admin.query(`create database ${copy} owner ${copy} template template0`);
      await admin.query(`revoke connect on database ${copy} from public`);
      const loader = await makeLoader({ admin, database: copy, owner: copy, tag: 'test' });
      await loadDatabase({ url: loginUrl(adminUrl, loader, copy), role: copy, sections });
      await admin.query(`drop database ${copy} with (force)`);
      await dropTransferRole(admin, loader.role);
      await admin.query(`drop role ${copy}`);
    } finally {
      await dropTransferRole(admin, reader.role);
      expect(seen.secret).toBe(false);
    }
  });
}

async function upgrade(move: Customer): Promise<void> {
  const { oldUrl: url, databaseName } = move;
  const found = await checkUpgrade({ url, databaseName, toMajor: 18, extensionsOfTarget: [], freeBytes: 1e12 });
  const asked = await askRows({ url, databaseName, toMajor: 18 });
  expect([...asked, ...found.findings].filter(({ level }) => level === 'ERROR')).toEqual([]);
  for (const stage of [copySchema, copyData, catchUp]) await stage(move);
  await cutOver(move);
  expect((await compareDatabases(move, null)).names).toEqual([]);
  await finishTarget(move);
}

async function removeCustomer({ databaseName: name }: Customer): Promise<void> {
  for (const { adminUrl } of [servers.old, servers.target]) {
    await runSql(adminUrl, `drop database if exists ${name} with (force)`);
    await runSql(adminUrl, `drop role if exists ${name}`);
  }
}

test.each(batches)(
  `no code of a generated schema reaches beyond its customer in backup, restore and upgrade (seed ${seed}, database %i)`,
  async (batch) => {
    await takeNotes();
    const move = await makeHostile(batch);
    const own = ownObjects(move.secret);
    const name = move.databaseName;
    expect(strangersIn((await takeNotes()).sprung, name)).toEqual([]);
    await whileSwapping(move, async () => {
      for (let attempt = 0; attempt < 3; attempt += 1) await backUpAndRestore(move, true).catch(() => undefined);
    });
    // A backup runs no code of the customer.
    const backedUp = await takeNotes();
    expect(backedUp.sprung.filter(({ session }) => session !== name)).toEqual([]);
    await backUpAndRestore(move, false);
    const restored = await takeNotes();
    expect(strangersIn(restored.sprung, name)).toEqual([]);
    await upgrade(move);
    const upgraded = await takeNotes();
    expect(strangersIn(upgraded.sprung, name)).toEqual([]);
    expect(Math.min(restored.sprung.length, upgraded.sprung.length)).toBeGreaterThan(0);
    expect([backedUp, restored, upgraded].filter(({ text }) => canaries.isIn(text))).toEqual([]);
    expect(await canaries.harm((role) => ['postgres', own.replicator.role].includes(role))).toEqual([]);
    await endMove(move);
    await removeCustomer(move);
    expect(await canaries.harm((role) => role === 'postgres')).toEqual([]);
  },
);

test('a trap records a superuser who calls it, and takes every right that the superuser may take', async () => {
  const move = await createCustomer(servers, 'trapped');
  const traps = trapStatements({ owner: 'trapped', file: '/dev/null', pid: 999_999_999, applicationName: 'nobody' });
  await withClient(move.ownUrl, async (client) => {
    for (const trap of traps) await client.query(trap);
  });
  await runSql(withDatabase(move.oldUrl, 'trapped'), "select public.spring('test')");
  expect(strangersIn((await takeNotes()).sprung, 'trapped')).toMatchObject([
    { how: 'test', acting: 'postgres', powerful: true },
  ]);
  expect(await canaries.harm((role) => role === 'postgres')).toEqual([expect.stringMatching(/^powerful: .*trapped/)]);
});
