/**
 * @tier long
 * @processes
 * @root long
 */
import { sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import { describeEngines, describeUpgrades } from '../../test/engines';
import { Canaries } from '../../test/hostile-canaries';
import { hostileSchema, schemaGrant, schemaName, trapStatements } from '../../test/hostile-schemas';
import { ask, Servers } from '../../test/servers';
import { type Held, holdDump } from '../../test/transfer';
import { dumpDatabase } from '../dump/dump-database';
import type { Finding, Section } from '../dump/manifest';
import { emptyServer, openAdmin, sweepTransferAccounts } from '../dump/transfer-account';
import type { Engine } from '../engines/list-engines';
import { loadDatabase } from '../load/load-database';
import type { MysqlServer } from '../server/mysql';
import { quoteName, Session } from '../session/session';
import type { TransferError } from '../session/transfer-error';
import { compareServers, Moment } from './compare';
import { catchUpServer, copyServer, ReplicatedSwitch } from './replication';

/*
 * Generated schemas of a hostile customer go through a backup, its restore and, on MariaDB, an upgrade. Their code
 * records the account that runs it, and tries to read and write everything. Canaries show whether the code did anything
 * that it had no right to do.
 */

const { seed, count } = sampleOf('hostile schemas of MariaDB and MySQL', { inCi: 200, inChaos: 1_000 });
const perServer = 25;
const lots = Array.from({ length: Math.ceil(count / perServer) }, (_, number) => number);
const [account, neighbours] = [300_910, 300_911];
const owner = 'owner';
const password = 'Owner-1';
const secret = 'b2'.repeat(32);

const steps = [
  ['mariadb@10.5', 'mariadb@10.11'],
  ['mariadb@10.11', 'mariadb@11.8'],
] as const;

// The schemas are divided among the upgrade steps, so that MariaDB gets each schema once.
for (const [at, step] of steps.entries()) {
  const own = lots.filter((lot) => lot % steps.length === at);
  if (own.length > 0) describeUpgrades([step], (from, to) => hostileCases(from, to, own));
}

// MySQL has only one version here, and so no upgrade step. It gets as many schemas as one step of MariaDB.
const lotsOfMysql = lots.filter((lot) => lot % steps.length === 0);
describeEngines(['mysql@9.7'], (engine) => hostileCases(engine, null, lotsOfMysql));

/**
 * Turns GTIDs off on MySQL. With GTIDs, MySQL refuses a statement that writes both to a table with transactions and to
 * one without. The trap needs a table without transactions, whose rows survive a rollback.
 */
const trapSettings = ({ flavour }: Engine): Record<string, string> =>
  flavour === 'mysql' ? { 'gtid-mode': 'OFF', 'enforce-gtid-consistency': 'OFF' } : {};

interface Rig {
  from: MysqlServer;
  restored: MysqlServer;
  /** The newer server, or null without a newer version. */
  target: MysqlServer | null;
  canaries: Canaries;
  connections: number[];
}

function hostileCases(engine: Engine, newer: Engine | null, own: readonly number[]): void {
  const servers = new Servers();
  const rig = {} as Rig;
  beforeAll(async () => {
    const neighbour = await servers.start(engine, { account: neighbours });
    const settings = trapSettings(engine);
    const from =
      newer === null
        ? await servers.start(engine, { account, settings })
        : await servers.startReplicable(engine, account);
    const restored = await servers.start(engine, { account, settings });
    const target = newer && (await servers.startReplicable(newer, account));
    const canaries = await Canaries.start(neighbour, account);
    await ask(from.admin, `CREATE USER ${owner} IDENTIFIED BY '${password}'`);
    Object.assign(rig, { from, restored, target, canaries, connections: [await canaries.watch(from)] });
    for (const server of [restored, target]) if (server !== null) await canaries.watch(server);
  });
  afterAll(async () => {
    await rig.canaries?.stop();
    await servers.close();
  });

  test.each(own)(
    `no code of a generated schema reaches beyond its customer, and its objects come back (seed ${seed}, lot %i)`,
    async (lot) => {
      const { from, canaries } = rig;
      const numbers = Array.from(
        { length: Math.min(perServer, count - lot * perServer) },
        (_, at) => lot * perServer + at,
      );
      try {
        await makeSchemas(rig, numbers);
        await backUpAndRestore(rig, numbers);
        if (rig.target !== null) await upgrade(rig.from, rig.target, numbers);
      } finally {
        for (const number of numbers) {
          await ask(from.admin, `DROP DATABASE IF EXISTS ${schemaName(number)}`);
          await ask(from.admin, `REVOKE ALL PRIVILEGES ON ${schemaName(number)}.* FROM ${owner}`);
        }
      }
      expect(await canaries.harm()).toEqual([]);
    },
  );
}

const optionsOf = ({ admin, engine: { flavour, release } }: MysqlServer) => ({ admin, flavour, release });
const openOwner = (server: MysqlServer): Promise<Session> =>
  Session.open(
    { ...server.admin, user: owner, password },
    { flavour: server.engine.flavour, statementMs: 20_000, lockMs: 2_000 },
  );

/** Creates the schemas. The server must accept more than half of their statements, and the whole trap. */
async function makeSchemas({ from, canaries, connections }: Rig, numbers: readonly number[]): Promise<void> {
  const { flavour } = from.engine;
  const traps = trapStatements({ owner, file: canaries.file, folder: canaries.folder, connections });
  const taken = { made: 0, refused: 0 };
  const kinds = new Map<string, number>();
  for (const number of numbers) {
    await ask(from.admin, `CREATE DATABASE ${schemaName(number)}`, schemaGrant(number, owner));
    const session = await openOwner(from);
    await session.run(`USE ${schemaName(number)}`);
    for (const trap of traps) await session.run(trap);
    for (const { kind, statements } of hostileSchema(seed, number, { flavour, owner })) {
      for (const statement of statements)
        await session.run(statement).then(
          () => {
            taken.made += 1;
            kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
          },
          () => {
            taken.refused += 1;
          },
        );
    }
    await session.close();
  }
  expect(taken.made).toBeGreaterThan(taken.refused);
}

interface Note {
  what: string;
  acting: string;
  session: string;
}

/** Reads the records of the traps on a server. */
async function readNotes({ admin }: MysqlServer, numbers: readonly number[]): Promise<Note[]> {
  const notes = numbers.map((number) => `SELECT what, acting, session, loot FROM ${schemaName(number)}.noted`);
  return (await ask(admin, notes.join(' UNION ALL '))) as Note[];
}

/** MariaDB's name of an event's session. */
const eventSession = 'event_scheduler@localhost';

/**
 * Returns the records of stolen content, and of code that ran as another account than the owner or in another account's
 * session.
 */
const strangersIn = (notes: readonly Note[]): Note[] =>
  notes.filter(({ what, acting, session }) => {
    const isOwners = session.startsWith(`${owner}@`) || (what === 'event' && session === eventSession);
    return what === 'loot' || acting !== `${owner}@%` || !isOwners;
  });

async function* watched(sections: AsyncIterable<Section>, canaries: Canaries): AsyncGenerator<Section> {
  for await (const { path, content } of sections) {
    yield {
      path,
      content: (async function* () {
        for await (const part of content) {
          expect(canaries.isIn(part.toString('latin1'))).toBe(false);
          yield part;
        }
      })(),
    };
  }
}

/** Takes two backups while a table and a view with a trap alternate under one name. */
async function backUpWhileSwapping(from: MysqlServer, number: number): Promise<void> {
  let isOver = false;
  const swapping = (async () => {
    const session = await openOwner(from);
    await session.run(`USE ${schemaName(number)}`);
    const turns = [
      'CREATE TABLE swapped (a INT)',
      'DROP TABLE swapped',
      "CREATE VIEW swapped AS SELECT spring('swapped') + take() AS a",
      'DROP VIEW swapped',
    ];
    while (!isOver) for (const turn of turns) await session.run(turn).catch(() => undefined);
    await session.close();
  })();
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const drain = async (): Promise<void> => {
      for await (const { content } of dumpDatabase(optionsOf(from))) for await (const part of content) void part;
    };
    await drain().catch(() => undefined);
  }
  isOver = true;
  await swapping;
}

interface Named {
  kind?: string;
  schema: string;
  name: string;
}

/**
 * Returns the part of a dump that can be compared, without objects that have findings and without the traps' records.
 */
function comparable({ content, manifest }: Held, findings: readonly Finding[]): unknown {
  const changed = findings.filter(({ code }) => /restored|broken/.test(code));
  const lost = new Set(changed.map(({ object }) => object.replace(/^CHECK [\s\S]* of (?=table )/, '')));
  const isKept = ({ kind = 'table', schema, name }: Named): boolean =>
    !lost.has(`${kind.toLowerCase()} ${quoteName(schema)}.${quoteName(name)}`);
  const kept = (list: string): Named[] => (content[list] as Named[]).filter(isKept);
  const rows = manifest.tables.filter((table) => isKept(table) && table.name !== 'noted');
  return { ...content, programs: kept('programs'), tables: kept('tables'), rows };
}

/** Reasons for which a restore leaves out an object that the old server could still use. */
const isUsable = /^(a column has no default|rows of the table violate it|the server reads its name as another one)/;

/** Expects that the old server cannot use an object that the restore left out, unless `isUsable` matches the reason. */
async function expectBroken({ admin }: MysqlServer, findings: readonly Finding[]): Promise<void> {
  const isLeftOut = ({ code, reason }: Finding): boolean =>
    code === 'view_broken' || (code === 'not_restored' && !isUsable.test(reason));
  for (const { code, object } of findings.filter(isLeftOut)) {
    const name = object.slice(object.indexOf('`'));
    const use = code === 'view_broken' ? `SELECT 1 FROM ${name} LIMIT 0` : `SHOW CREATE ${object}`;
    await expect(ask(admin, use).then(() => object)).rejects.toMatchObject({ errno: expect.any(Number) });
  }
}

async function expectOwnerAlone({ admin }: MysqlServer): Promise<void> {
  const users = await ask(
    admin,
    "SELECT User AS user FROM mysql.user WHERE User NOT LIKE 'm%' AND User NOT IN ('root', 'PUBLIC', '')",
  );
  expect(users).toEqual([{ user: owner }]);
}

/** Runs the events of a server until one has written a record. */
async function runEvents(server: MysqlServer, numbers: readonly number[]): Promise<void> {
  const before = (await readNotes(server, numbers)).length;
  await ask(server.admin, 'SET GLOBAL event_scheduler = ON');
  await until(async () => (await readNotes(server, numbers)).length > before, { timeoutMs: 60_000 });
  await ask(server.admin, 'SET GLOBAL event_scheduler = OFF');
  expect(strangersIn(await readNotes(server, numbers))).toEqual([]);
}

async function empty(server: MysqlServer): Promise<void> {
  const admin = await openAdmin(server.admin, server.engine.flavour);
  await emptyServer(admin);
  await admin.close();
}

async function backUpAndRestore({ from, restored, canaries }: Rig, numbers: readonly number[]): Promise<void> {
  await runEvents(from, numbers);
  await backUpWhileSwapping(from, numbers[0] ?? 0);
  const before = await holdDump(from);
  const sections = watched(dumpDatabase(optionsOf(from)), canaries);
  try {
    const { findings } = await loadDatabase({ ...optionsOf(restored), sections });
    expect(comparable(await holdDump(restored), findings)).toEqual(comparable(before, findings));
    expect(strangersIn([...(await readNotes(from, numbers)), ...(await readNotes(restored, numbers))])).toEqual([]);
    await expectBroken(from, findings);
    await runEvents(restored, numbers);
    await expectOwnerAlone(restored);
  } finally {
    // The next schemas need an empty server.
    await empty(restored);
  }
}

/** Converts the tables `noted` to InnoDB, and then drops every object that an upgrade refuses. */
async function makeMovable(from: MysqlServer, target: MysqlServer, numbers: readonly number[]): Promise<void> {
  for (const number of numbers) await ask(from.admin, `ALTER TABLE ${schemaName(number)}.noted ENGINE = InnoDB`);
  for (;;) {
    const sections = dumpDatabase({ ...optionsOf(from), isSchemaOnly: true });
    const refused = await loadDatabase({ ...optionsOf(target), sections, areAccountsLocked: true }).then(
      ({ findings }) => findings.map(({ object }) => object),
      (error: TransferError) => [error.object ?? String(error)],
    );
    await empty(target);
    if (refused.length === 0) return;
    for (const object of new Set(refused))
      await ask(from.admin, 'SET SESSION foreign_key_checks = 0', `DROP ${object}`);
  }
}

async function upgrade(from: MysqlServer, target: MysqlServer, numbers: readonly number[]): Promise<void> {
  await makeMovable(from, target, numbers);
  const sideOf = ({ admin, engine: { release } }: MysqlServer) => ({ admin, release });
  const move = { old: sideOf(from), target: sideOf(target), secret };
  await copyServer(move);
  await catchUpServer(move);
  const opened = await ReplicatedSwitch.open(move);
  await opened.bringLevel();
  await opened.close();
  const moment = await Moment.open(move.target);
  await moment.take();
  expect(await compareServers(move, moment)).toMatchObject({ outcome: 'equal', names: [] });
  await moment.close();
  expect(strangersIn([...(await readNotes(from, numbers)), ...(await readNotes(target, numbers))])).toEqual([]);
  await ask(target.admin, `ALTER USER ${owner} ACCOUNT UNLOCK`);
  await runEvents(target, numbers);
  await expectOwnerAlone(target);
  await sweepTransferAccounts(from.admin, from.engine.flavour);
  await empty(target);
  await ask(target.admin, 'RESET MASTER', "SET GLOBAL gtid_slave_pos = ''");
}
