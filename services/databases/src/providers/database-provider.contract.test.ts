/**
 * Tests each driver on real instances. Each copying stage of an upgrade is interrupted once.
 *
 * @tier long
 * @processes
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { folderSink, folderSource } from '@drydock/archive';
import { realisticDatabase } from '@drydock/postgres/testing/realistic-database';
import pg from 'pg';
import { type DatabaseHostProcess, startDatabaseHost } from '../../test/database-host-process';
import type {
  DatabaseProvider,
  DatabaseRef,
  FencedCallWithProgress,
  HostedDatabase,
  InstanceSpec,
  Upgrade,
} from './database-provider';
import { localDatabaseProvider } from './database-provider.local';

const archiveKey = randomBytes(32);
/** The drivers under test. All must keep the same promises, so a new driver needs only a line here. */
const drivers: Array<[name: string, open: (host: DatabaseHostProcess) => DatabaseProvider]> = [
  ['local', ({ client }) => localDatabaseProvider({ client, archiveKey })],
];

const spec: InstanceSpec = {
  major: 16,
  databaseName: 'shop',
  username: 'shop_owner',
  password: 'the-owner-s-password',
  size: { vcpu: 1, ramGb: 1, storageGb: 10 },
};
const call = (fence: number, signal = new AbortController().signal): FencedCallWithProgress => ({
  fence: String(fence),
  workflowId: `w-${fence}`,
  signal,
  progress: () => undefined,
});

describe.each(drivers)('the database provider %s', (_name, open) => {
  let host: DatabaseHostProcess;
  let provider: DatabaseProvider;
  let folder: string;
  beforeAll(async () => {
    host = await startDatabaseHost();
    provider = open(host);
    folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-database-backups-'));
  });
  afterAll(async () => {
    await host.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const newDatabase = (): DatabaseRef => ({ databaseId: randomUUID(), orgId: randomUUID(), mode: 'live' });
  const runSql = async <Row>(
    { host: address, port, caCertificate: ca }: HostedDatabase,
    ...statements: string[]
  ): Promise<Row[]> => {
    const { databaseName: database, username: user, password } = spec;
    const client = new pg.Client({
      host: address,
      port,
      database,
      user,
      password,
      ssl: { ca },
      connectionTimeoutMillis: 20_000,
    });
    await client.connect();
    try {
      let rows: Row[] = [];
      for (const statement of statements) rows = (await client.query(statement)).rows;
      return rows;
    } finally {
      await client.end();
    }
  };
  const filled = async (ref: DatabaseRef): Promise<HostedDatabase> => {
    const database = await provider.create(ref, spec, call(1));
    await runSql(database, ...realisticDatabase({ bytes: 2e6, password: 'the-writer-s-password' }));
    return database;
  };

  it('makes a database once, says what it is, and forgets it when it is destroyed', async () => {
    const ref = newDatabase();
    expect(await provider.describe(ref)).toBeNull();
    const made = await provider.create(ref, spec, call(1));
    await runSql(made, 'create table kept (a int)');
    const again = await provider.create(ref, spec, call(2));
    expect(again).toMatchObject({
      host: made.host,
      port: made.port,
      major: 16,
      isUp: true,
      databaseName: 'shop',
      username: 'shop_owner',
      upgrade: null,
    });
    expect(await runSql(again, 'select count(*)::int as n from kept')).toEqual([{ n: 0 }]);
    await expect(provider.destroy(ref, call(1))).rejects.toMatchObject({ refusal: 'stale_fence' });
    await provider.destroy(ref, call(3));
    await provider.destroy(ref, call(3));
    expect(await provider.describe(ref)).toBeNull();
  });

  it('proves a backup by restoring it and reading a row back as a client, and refuses one that was tampered with', async () => {
    const ref = newDatabase();
    await filled(ref);
    const archiveId = randomUUID();
    const place = path.join(folder, archiveId);
    const packed = await provider.pack(
      ref,
      { sink: folderSink(place), archiveId, sequence: 1, createdAt: new Date() },
      call(2),
    );
    expect(packed).toMatchObject({ major: 16, manifestMac: expect.any(String) });
    const archive = { source: folderSource(place), archiveId, manifestMac: packed.manifestMac };
    const verified = await provider.verifyRestore(ref, packed.major, archive, call(3));
    expect(verified).toMatchObject({ tables: 11, readFrom: expect.stringMatching(/^"\w+"\."/) });
    expect(verified.rows).toBeGreaterThan(1_000);
    const wrong = { ...archive, manifestMac: '0'.repeat(packed.manifestMac.length) };
    await expect(provider.verifyRestore(ref, packed.major, wrong, call(4))).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    await provider.destroy(ref, call(5));
  });

  it("proves a backup whose row security names the customer's own roles and holds for the owner too", async () => {
    const ref = newDatabase();
    const database = await provider.create(ref, spec, call(1));
    await runSql(
      database,
      'create role reader',
      'create role "Odd ""name"',
      'create table hidden as select generate_series(1, 5000) as id',
      'alter table hidden enable row level security',
      'alter table hidden force row level security',
      'create policy readers on hidden for select to reader using (true)',
      'create table mine as select 1 as id',
      'alter table mine enable row level security',
      'alter table mine force row level security',
      'create policy owners on mine for select to reader, shop_owner using (true)',
      'create table shown as select 1 as id',
      'alter table shown enable row level security',
      'create policy odd on shown to "Odd ""name" using (true)',
    );
    const archiveId = randomUUID();
    const place = path.join(folder, archiveId);
    const packed = await provider.pack(
      ref,
      { sink: folderSink(place), archiveId, sequence: 1, createdAt: new Date() },
      call(2),
    );
    // The backup is proven alone. So a role that it mentions may be gone from the database.
    await runSql(database, 'drop policy odd on shown', 'drop role "Odd ""name"');
    const archive = { source: folderSource(place), archiveId, manifestMac: packed.manifestMac };
    const verified = await provider.verifyRestore(ref, packed.major, archive, call(3));
    // A policy hides all rows of the largest table from its owner, before and after the restore. So the row is read
    // back from a smaller table.
    expect(verified).toEqual({ tables: 3, rows: 5_002, readFrom: '"public"."mine"', findings: [] });
    await provider.destroy(ref, call(4));
  });

  it('says before an upgrade what prevents it and by which path it would go, and does not begin it', async () => {
    const ref = newDatabase();
    const database = await provider.create(ref, spec, call(1));
    await runSql(database, 'create table measured (at json, v int)', 'create unlogged table cache (a int)');
    const plan = await provider.planUpgrade(ref, 18);
    expect(plan).toMatchObject({ path: 'offline', neededBytes: Math.ceil(plan.sizeBytes * 2.2) });
    expect(plan.findings.map(({ level, code }) => `${level} ${code}`)).toEqual(
      expect.arrayContaining(['WARNING offline_path', 'INFO unlogged_copied', 'INFO keyless_tables']),
    );
    const upgrade: Upgrade = { upgradeId: 'u-1', toMajor: 18, path: 'logical' };
    await expect(provider.createTarget(ref, upgrade, call(2))).rejects.toMatchObject({
      refusal: 'precheck_failed',
      findings: [expect.objectContaining({ code: 'offline_path' })],
    });
    await expect(provider.planUpgrade(ref, 15)).rejects.toMatchObject({ refusal: 'major_not_installed' });
    await expect(provider.planUpgrade(newDatabase(), 18)).rejects.toMatchObject({ refusal: 'unknown_database' });
    expect((await provider.describe(ref))?.upgrade).toBeNull();
    await provider.destroy(ref, call(3));
  });

  it('upgrades although every stage is interrupted once and repeated under another claim; after the switch nothing is undone', async () => {
    const ref = newDatabase();
    const database = await filled(ref);
    const upgrade: Upgrade = { upgradeId: 'u-2', toMajor: 18, path: 'logical' };
    await provider.createTarget(ref, upgrade, call(2));
    let fence = 2;
    for (const stage of ['copySchema', 'copyData', 'catchUp'] as const) {
      // The first worker is interrupted, and the next worker continues with a newer fence.
      const cut = new AbortController();
      const cutting = provider[stage](ref, upgrade, call(fence, cut.signal)).catch(() => undefined);
      setTimeout(() => cut.abort(new Error('the lease was lost')), 300);
      await cutting;
      await provider[stage](ref, upgrade, call(++fence));
      await expect(provider[stage](ref, upgrade, call(fence - 1))).rejects.toMatchObject({ refusal: 'stale_fence' });
    }
    expect(await provider.describe(ref)).toMatchObject({ major: 16, upgrade: { phase: 'prepared', toMajor: 18 } });
    const { writesBlockedMs } = await provider.cutover(ref, upgrade, call(fence));
    expect(await provider.cutover(ref, upgrade, call(fence))).toEqual({ writesBlockedMs });
    expect(await provider.describe(ref)).toMatchObject({
      host: database.host,
      port: database.port,
      major: 18,
      upgrade: { phase: 'switched' },
    });
    await expect(provider.abandon(ref, upgrade, call(fence))).rejects.toMatchObject({ refusal: 'switched' });
    await expect(provider.retireOld(ref, upgrade, call(fence))).rejects.toMatchObject({ refusal: 'moved' });
    await provider.copyData(ref, upgrade, call(fence));
    await runSql(database, "insert into notes values (0, 'written after the cutover')");
    expect(await provider.compare(ref, upgrade, call(fence))).toMatchObject({
      outcome: 'equal',
      tables: 11,
      names: [],
    });
    for (let again = 0; again < 2; again++) await provider.finish(ref, upgrade, call(fence));
    expect(await runSql(database, "select count(*)::int as n from notes where b like 'written after%'")).toEqual([
      { n: 1 },
    ]);
    for (let again = 0; again < 2; again++) await provider.retireOld(ref, upgrade, call(fence));
    expect(await provider.describe(ref)).toMatchObject({ major: 18, isUp: true, upgrade: null });
    await provider.destroy(ref, call(fence));
  });
});
