import type { CreatedDatabase, DatabaseCatalogue, ManagedDatabase } from '@drydock/contracts/databases/databases';
import { askEndpoint, endpointsOf, notAllowed, rowsOf } from '@drydock/service/testing/ask-endpoint';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { givenWorkflow } from '@drydock/service/testing/conformance-workflow';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { givenBackup, givenDatabase, startApi } from '../../test/databases-api';
import { catalogueOf } from '../catalogue/catalogue';
import { refuseOrder } from '../lifecycle/create-database';
import { databaseSubject } from './database.types';

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
  await api.rows("INSERT INTO org_quotas (org_id, mode, max_count) VALUES ($1, 'live', 1000)", [owner.orgId]);
});
afterAll(() => api.close());

const wanted = (change: object = {}) => ({
  label: 'Shop',
  engine: 'postgres',
  engine_version: '16',
  size: 'small',
  ...change,
});
const create = (body: object, options: object = {}) => api.call('POST', '/v1/databases', { body, ...options });
const remove = (id: string, backupId: string, caller = owner) =>
  api.call('DELETE', `/v1/databases/${id}/backups/${backupId}`, { caller });
/** Ends the work on a database as a worker would. */
const endWork = (id: string) =>
  api.rows("UPDATE workflow SET status = 'succeeded', finished_at = now() WHERE subject_id = $1", [id]);

describe('POST /v1/databases', () => {
  it('accepts a database and shows its password, which is stored nowhere', async () => {
    const answer = await create(wanted());
    expect([answer.status, answer.json]).toMatchObject([
      202,
      {
        label: 'Shop',
        engine_label: 'PostgreSQL 16',
        status: 'provisioning',
        host: '',
        tls_required: true,
        last_backup_at: null,
        vcpu: 1,
      },
    ]);
    const { id, password } = answer.json as CreatedDatabase;
    expect(password).toMatch(/^[\w-]{32}$/);
    expect((await api.call('GET', `/v1/databases/${id}`)).json).not.toHaveProperty('password');
    for (const table of ['managed_databases', 'workflow', 'idempotency_records', 'audit_outbox']) {
      const rows = await api.rows(`SELECT * FROM ${table}`);
      expect(JSON.stringify(rows)).not.toContain(password);
    }
  });

  it('shows the same password again for the same Idempotency-Key, and makes one database', async () => {
    const [first, again] = [
      await create(wanted({ label: 'Once' }), { idempotencyKey: 'one' }),
      await create(wanted({ label: 'Once' }), { idempotencyKey: 'one' }),
    ];
    expect([again.text, again.headers['idempotent-replayed']]).toEqual([first.text, 'true']);
    expect(await api.rows("SELECT 1 FROM managed_databases WHERE label = 'Once'")).toHaveLength(1);
  });

  it.each([
    ['a major that is not offered', { engine_version: '9' }, 'version_not_offered'],
    ['a version of another engine', { engine: 'mysql' }, 'version_not_offered'],
    ['a version that is only the same number', { engine_version: '16.0' }, 'version_not_offered'],
    ['a size that there is not', { size: 'huge' }, 'size_not_offered'],
    ['a standby', { high_availability: true }, 'high_availability_unavailable'],
    ['an unknown field', { port: 5432 }, 'invalid_request'],
    ['a label with a control character', { label: 'a\u0007' }, 'invalid_request'],
    ['a version that is a number', { engine_version: 16 }, 'invalid_request'],
  ])('refuses %s', async (_what, change, code) => {
    expect((await create(wanted(change))).json).toMatchObject({ status: 422, code });
  });
});

describe('an order of MySQL or MariaDB', () => {
  const order = (engine_version: string) => ({
    engine: 'mysql' as const,
    engine_version,
    size: 'small',
    high_availability: false,
  });

  it.each([
    ['the host has no programs of the engine', '10.11', [16, 17, 18], 'engine_not_offered'],
    ['the host has another version of it', '10.11', [16, '10.5'], 'version_not_offered'],
    ['nobody makes such a version', '10.12', ['10.12'], 'version_not_offered'],
    ['the host has its programs', '10.11', ['10.5', '10.11'], undefined],
  ])('where %s: %s', (_where, version, majors, code) => {
    expect(refuseOrder(order(version), majors)?.code).toBe(code);
  });

  it('is not decided while the host does not answer', async () => {
    const answer = await create(wanted({ engine: 'mysql', engine_version: '10.11' }));
    expect([refusalOf(answer), answer.json]).toMatchObject([
      '503 dependency_unavailable',
      { dependency: 'database-host' },
    ]);
  });
});

it('the catalogue has the versions of MySQL and MariaDB whose programs the host has, with their flavour, in the order of their numbers', () => {
  const { engines } = catalogueOf(['11.8', '9.7', '10.11']);
  expect(
    engines.map(({ engine, versions }) => [engine, versions.map(({ label, flavour }) => [label, flavour])]),
  ).toEqual([
    ['postgres', [16, 17, 18].map((major) => [`PostgreSQL ${major}`, null])],
    [
      'mysql',
      [
        ['MySQL 9.7', 'mysql'],
        ['MariaDB 10.11', 'mariadb'],
        ['MariaDB 11.8', 'mariadb'],
      ],
    ],
  ]);
  expect(catalogueOf([]).engines.map(({ engine }) => engine)).toEqual(['postgres']);
});

it('the catalogue lists what can be created, and every target of an upgrade is in it', async () => {
  const { json } = await api.call('GET', '/v1/databases/catalogue', { caller: { ...owner, scopes: [] } });
  const { engines, sizes } = json as DatabaseCatalogue;
  expect(sizes.map(({ code }) => code)).toContain('small');
  expect(engines.flatMap(({ versions }) => versions.flatMap(({ upgradable_to }) => upgradable_to))).toContain('18');
  for (const { versions } of engines) {
    const known = versions.map(({ version }) => version);
    for (const { upgradable_to } of versions)
      expect(upgradable_to.filter((version) => !known.includes(version))).toEqual([]);
  }
});

it('a list has the caller’s databases of its mode, newest first, and none that was deleted, also where it is asked for', async () => {
  const caller = callerOf();
  const first = await givenDatabase(api, caller);
  const second = await givenDatabase(api, caller);
  await givenDatabase(api, caller, { status: 'deleted' });
  await givenDatabase(api, { ...caller, mode: 'sandbox' });
  const { data } = (await api.call('GET', '/v1/databases', { caller })).json as { data: ManagedDatabase[] };
  expect(data.map(({ id }) => id)).toEqual([second, first]);
  const deleted = await api.call('GET', '/v1/databases?status=deleted', { caller });
  expect(deleted.json).toMatchObject({ data: [] });
});

describe('endpoint 10', () => {
  const upgrade = (id: string, engine_version: unknown) =>
    api.call('POST', `/v1/databases/${id}/upgrade`, { body: { engine_version } });

  it('accepts a newer major, with its workflow, its backup and its audit entry', async () => {
    const id = await givenDatabase(api, owner);
    const answer = await upgrade(id, '18');
    expect([answer.status, answer.json]).toMatchObject([202, { id, status: 'provisioning', engine_version: '16' }]);
    const workflow = (await api.call('GET', String(answer.headers['location']))).json;
    expect(workflow).toMatchObject({ kind: 'upgrade_database', status: 'queued', subject: { type: 'database', id } });
    expect(await auditedOf(api, `/v1/databases/${id}`)).toEqual(['database.upgrade']);
    const second = await upgrade(id, '18');
    const workflow_id = workflowIdOf(answer);
    expect(second.json).toMatchObject({ status: 422, code: 'operation_in_progress', workflow_id });
  });

  it.each([
    ['a downgrade', { version: '18' }, '16', 'version_not_newer'],
    ['the version it has', {}, '16', 'version_not_newer'],
    ['a major that nobody runs', {}, '99', 'version_not_offered'],
    ['a version as text', {}, 'latest', 'version_not_offered'],
    ['a database that was never backed up', { isBackedUp: false }, '18', 'never_backed_up'],
    ['a failed database', { status: 'failed' }, '18', 'database_not_available'],
    ['a number', {}, 18, 'invalid_request'],
    ['an object', {}, { not: '' }, 'invalid_request'],
  ])('refuses %s and changes nothing', async (_what, given, version, code) => {
    const id = await givenDatabase(api, owner, given);
    const before = await api.rows('SELECT * FROM managed_databases WHERE id = $1', [id]);
    expect((await upgrade(id, version)).json).toMatchObject({ status: 422, code });
    expect(await api.rows('SELECT * FROM managed_databases WHERE id = $1', [id])).toEqual(before);
    expect(await auditedOf(api, `/v1/databases/${id}`)).toEqual([]);
  });

  it('repeats the refusal of a version for its Idempotency-Key, even when the version would be accepted by now', async () => {
    const id = await givenDatabase(api, owner, { version: '18' });
    const once = () =>
      api.call('POST', `/v1/databases/${id}/upgrade`, {
        body: { engine_version: '18' },
        idempotencyKey: `refused-${id}`,
      });
    const first = await once();
    expect([first.status, first.json]).toMatchObject([422, { code: 'version_not_newer' }]);
    await api.rows("UPDATE managed_databases SET engine_version = '16' WHERE id = $1", [id]);
    const again = await once();
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([422, first.text, 'true']);
    expect((await upgrade(id, '18')).status).toBe(202);
  });

  it('accepts exactly one of five requests at once, and names it to the others', async () => {
    const id = await givenDatabase(api, owner);
    const answers = await Promise.all(Array.from({ length: 5 }, () => upgrade(id, '18')));
    const [accepted, ...more] = answers.filter(({ status }) => status === 202);
    expect([accepted === undefined, more]).toEqual([false, []]);
    const workflow_id = workflowIdOf(accepted);
    for (const refused of answers.filter((answer) => answer !== accepted))
      expect(refused.json).toMatchObject({ status: 422, code: 'operation_in_progress', workflow_id });
  });
});

describe('a restore', () => {
  const restore = (id: string, backupId: string, options: object = {}) =>
    api.call('POST', `/v1/databases/${id}/backups/${backupId}/restore`, { body: {}, ...options });

  it('is accepted once for one Idempotency-Key, with its workflow and its audit entry; meanwhile other changes are refused', async () => {
    const id = await givenDatabase(api, owner);
    const backupId = await givenBackup(api, id);
    const answer = await restore(id, backupId, { idempotencyKey: 'restore-once' });
    expect([answer.status, answer.json]).toMatchObject([202, { id, status: 'provisioning', engine_version: '16' }]);
    const workflow = (await api.call('GET', String(answer.headers['location']))).json;
    expect(workflow).toMatchObject({ kind: 'restore_database', status: 'queued', subject: { type: 'database', id } });
    const again = await restore(id, backupId, { idempotencyKey: 'restore-once' });
    expect([again.text, again.headers['idempotent-replayed']]).toEqual([answer.text, 'true']);
    expect(await auditedOf(api, `/v1/databases/${id}`)).toEqual(['database_backup.restore']);
    const workflow_id = workflowIdOf(answer);
    expect((await restore(id, backupId)).json).toMatchObject({
      status: 422,
      code: 'operation_in_progress',
      workflow_id,
    });
  });

  it.each([
    ['a backup that there is not', {}, () => uuidv7(), 'backup_not_found'],
    ['a malformed id', {}, () => 'no-id', 'backup_not_found'],
    ['a backup that has not completed', {}, (id: string) => givenBackup(api, id, 'running'), 'backup_not_completed'],
    ['a backup that failed', {}, (id: string) => givenBackup(api, id, 'failed'), 'backup_not_completed'],
    [
      'another database’s backup',
      {},
      async () => givenBackup(api, await givenDatabase(api, owner)),
      'backup_not_found',
    ],
    ['a failed database', { status: 'failed' }, (id: string) => givenBackup(api, id), 'database_not_available'],
  ])('refuses %s, changes nothing, and the preflight says so', async (_what, given, backupOf, code) => {
    const id = await givenDatabase(api, owner, given);
    const backupId = await backupOf(id);
    const before = await api.rows('SELECT * FROM managed_databases WHERE id = $1', [id]);
    expect((await restore(id, backupId)).json).toMatchObject({ status: 422, code });
    const preflight = await api.call('POST', `/v1/databases/${id}/backups/${backupId}/restore/preflight`, { body: {} });
    expect([preflight.status, preflight.json]).toMatchObject([200, { refusal: { code }, undo: false }]);
    expect(await api.rows('SELECT * FROM managed_databases WHERE id = $1', [id])).toEqual(before);
    expect(await auditedOf(api, `/v1/databases/${id}`)).toEqual([]);
  });
});

describe('a backup on demand', () => {
  const take = (id: string) => api.call('POST', `/v1/databases/${id}/backups`, { body: {} });
  const orderedBefore = async (databaseId: string, hoursAgo: number, status = 'succeeded'): Promise<void> => {
    const subject = databaseSubject(databaseId);
    const order = { kind: 'take_database_backup', subject, input: {}, status: 'succeeded' as const };
    await api.rows(
      `UPDATE workflow SET created_at = now() - $2 * interval '1 hour', status = $3,
        finished_at = CASE WHEN $3 <> 'running' THEN now() END,
        error = CASE WHEN $3 = 'failed' THEN '{"code": "step_failed"}'::json END
        WHERE id = $1`,
      [await givenWorkflow(api, owner, order), hoursAgo, status],
    );
  };

  it('is refused if thirty of the database were ordered within 24 hours, without failed ones', async () => {
    const [id, other] = [await givenDatabase(api, owner), await givenDatabase(api, owner)];
    for (let count = 1; count <= 28; count += 1) await orderedBefore(id, 3);
    for (const hoursAgo of [25, 23]) await orderedBefore(id, hoursAgo);
    await orderedBefore(id, 1, 'running');
    await orderedBefore(id, 1, 'failed');
    const refused = await take(id);
    expect([refused.status, refused.json]).toMatchObject([429, { code: 'on_demand_limit_reached' }]);
    const retryAfter = Number(refused.headers['retry-after']);
    expect(retryAfter > 3_500 && retryAfter <= 3_600).toBe(true);
    expect((await take(other)).status).toBe(202);
    await api.rows("UPDATE workflow SET created_at = created_at - interval '2 hours' WHERE subject_id = $1", [id]);
    expect((await take(id)).status).toBe(202);
  });

  it('is refused while the database has two hundred, and taken again once one is deleted', async () => {
    const id = await givenDatabase(api, owner);
    const [backupId] = [await givenBackup(api, id), await givenBackup(api, id, 'failed')];
    await api.rows(
      `INSERT INTO database_backups (id, database_id, kind, status, engine_version, sequence, created_at)
        SELECT gen_random_uuid(), $1, (CASE WHEN n < 200 THEN 'on_demand' ELSE 'pre_restore' END)::backup_kind,
          'running', '16', n + 1000, now() - interval '2 days'
        FROM generate_series(1, 210) n`,
      [id],
    );
    expect((await take(id)).json).toMatchObject({ status: 422, code: 'quota_exceeded', limit: 200, used: 200 });
    await remove(id, backupId);
    await endWork(id);
    expect((await take(id)).status).toBe(202);
  });

  it('is refused by the state of the database before the number of its backups is asked', async () => {
    const id = await givenDatabase(api, owner, { status: 'failed' });
    for (let count = 1; count <= 30; count += 1) await orderedBefore(id, 1);
    expect((await take(id)).json).toMatchObject({ status: 422, code: 'database_not_available' });
  });
});

describe('the deletion of a backup', () => {
  it('hides the backup at once, and the database tells its newest that is left', async () => {
    const id = await givenDatabase(api, owner);
    const [older, newer] = [await givenBackup(api, id), await givenBackup(api, id)];
    await api.rows("UPDATE database_backups SET completed_at = '2026-01-02T03:04:05Z' WHERE id = $1", [older]);
    const answer = await remove(id, newer);
    expect([answer.status, answer.json]).toMatchObject([202, { id: newer, status: 'completed' }]);
    const workflow = (await api.call('GET', String(answer.headers['location']))).json;
    expect(workflow).toMatchObject({ kind: 'delete_database_backup', status: 'queued' });
    expect(await auditedOf(api, `/v1/databases/${id}`)).toEqual(['database_backup.delete']);
    const { data } = (await api.call('GET', `/v1/databases/${id}/backups`)).json as { data: object[] };
    expect(data).toMatchObject([{ id: older }]);
    expect((await api.call('GET', `/v1/databases/${id}`)).json).toMatchObject({
      last_backup_at: '2026-01-02T03:04:05.000Z',
    });
    await endWork(id);
    expect(refusalOf(await remove(id, newer))).toBe('404 database_backup_not_found');
    await remove(id, older);
    expect((await api.call('GET', `/v1/databases/${id}`)).json).toMatchObject({ last_backup_at: null });
  });

  it('is refused while the database is worked on, and leaves the backup', async () => {
    const id = await givenDatabase(api, owner);
    const backupId = await givenBackup(api, id);
    const taken = await api.call('POST', `/v1/databases/${id}/backups`, { body: {} });
    expect((await remove(id, backupId)).json).toMatchObject({
      code: 'operation_in_progress',
      workflow_id: workflowIdOf(taken),
    });
    expect((await api.call('GET', `/v1/databases/${id}/backups/${backupId}`)).status).toBe(200);
  });

  it('is refused while another database is being made of the backup', async () => {
    const caller = callerOf();
    const id = await givenDatabase(api, caller);
    const backupId = await givenBackup(api, id);
    const created = await create(wanted({ from: { backup_id: backupId } }), { caller });
    const workflow_id = workflowIdOf(created);
    expect((await remove(id, backupId, caller)).json).toMatchObject({ code: 'operation_in_progress', workflow_id });
    await endWork((created.json as CreatedDatabase).id);
    expect((await remove(id, backupId, caller)).status).toBe(202);
  });

  it('waits for an order of a database that names the backup and is not committed yet', async () => {
    const id = await givenDatabase(api, owner);
    const backupId = await givenBackup(api, id);
    const client = new pg.Client({ connectionString: api.postgres.url });
    await client.connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM database_backups WHERE id = $1 FOR KEY SHARE', [backupId]);
    const removed = remove(id, backupId);
    const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await until(async () => (await api.rows(waiting)).length > 0);
    const other = await givenDatabase(api, owner);
    await client.query(
      `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id)
        VALUES (gen_random_uuid(), 'create_database_from_backup', $1, 'database', $2, $3, 'live', $4, 'test')`,
      [`database:${other}`, other, owner.orgId, { backupId }],
    );
    await client.query('COMMIT');
    await client.end();
    expect((await removed).json).toMatchObject({ code: 'operation_in_progress' });
  });
});

describe('a database made from a backup', () => {
  const createFrom = (backup_id: string, change: object = {}) => create(wanted({ from: { backup_id }, ...change }));

  it('is accepted for a backup of its major or an older one', async () => {
    const backupId = await givenBackup(api, await givenDatabase(api, owner));
    const answer = await createFrom(backupId, { engine_version: '18' });
    expect([answer.status, answer.json]).toMatchObject([
      202,
      { engine_version: '18', status: 'provisioning', password: expect.any(String) },
    ]);
    const workflow = (await api.call('GET', String(answer.headers['location']))).json;
    expect(workflow).toMatchObject({ kind: 'create_database_from_backup', status: 'queued' });
  });

  it.each([
    [
      'another organisation’s backup',
      async () => givenBackup(api, await givenDatabase(api, callerOf())),
      'backup_not_found',
    ],
    [
      'the other mode’s',
      async () => givenBackup(api, await givenDatabase(api, { ...owner, mode: 'sandbox' })),
      'backup_not_found',
    ],
    [
      'a deleted database’s',
      async () => givenBackup(api, await givenDatabase(api, owner, { status: 'deleted' })),
      'backup_not_found',
    ],
    [
      'one that has not completed',
      async () => givenBackup(api, await givenDatabase(api, owner), 'queued'),
      'backup_not_completed',
    ],
    [
      'a newer major’s',
      async () => givenBackup(api, await givenDatabase(api, owner), 'completed', '17'),
      'backup_version_newer',
    ],
    ['MariaDB’s', async () => givenBackup(api, await givenDatabase(api, owner), 'completed', '10.5'), 'engine_differs'],
    ['what is no id', async () => 'no-id', 'invalid_request'],
  ])('is refused for %s', async (_what, backupOf, code) => {
    expect((await createFrom(await backupOf())).json).toMatchObject({ status: 422, code });
  });

  /**
   * Creates a database of `size` from a backup of `rawBytes` unpacked bytes, whose database has the size `sourceSize`.
   */
  const createSized = async (size: string, sourceSize: string, rawBytes: number | null) => {
    const caller = callerOf();
    const source = await givenDatabase(api, caller);
    const backupId = await givenBackup(api, source);
    await api.rows('UPDATE managed_databases SET size = $2 WHERE id = $1', [source, sourceSize]);
    await api.rows('UPDATE database_backups SET raw_bytes = $2 WHERE id = $1', [backupId, rawBytes]);
    return create(wanted({ from: { backup_id: backupId }, size }), { caller });
  };

  it.each([
    ['more than its size stores', 'small', 'large', 20e9 + 1, '422 size_too_small'],
    ['exactly what its size stores', 'small', 'large', 20e9, '202 '],
    ['less than its larger size stores', 'medium', 'large', 20e9 + 1, '202 '],
    ['more than the size of both stores, whose source held it in less', 'small', 'small', 400e9, '202 '],
    ['unknown, as an earlier version took it', 'small', 'large', null, '202 '],
  ])('where the unpacked backup is %s', async (_where, size, sourceSize, rawBytes, expected) => {
    const answer = await createSized(size, sourceSize, rawBytes);
    expect(`${answer.status} ${(answer.json as { code?: string }).code ?? ''}`).toBe(expected);
  });
});

describe('every endpoint of databases', () => {
  const ours = endpointsOf('databases');
  const bodies: Record<string, object> = {
    createDatabase: wanted(),
    takeDatabaseBackup: {},
    restoreDatabaseBackup: {},
    preflightDatabaseBackupRestore: {},
    upgradeDatabase: { engine_version: '18' },
    preflightDatabaseUpgrade: { engine_version: '18' },
  };
  const guarded = ours.filter(({ permissions: needed }) => needed.length > 0);
  it.each(rowsOf(guarded))('%s is 403 without its permission, whatever exists', async (id, endpoint) => {
    const answer = await askEndpoint(api, endpoint, { body: bodies[id], caller: notAllowed(owner, endpoint) });
    expect(refusalOf(answer)).toBe('403 permission_denied');
  });

  const aboutOne = ours.filter(({ path }) => path.includes('{databaseId}'));
  it.each(rowsOf(aboutOne))(
    '%s answers another’s, the other mode’s, a deleted, a malformed and a nonexistent id with one identical 404',
    async (id, endpoint) => {
      const databaseId = await givenDatabase(api, owner);
      const deleted = await givenDatabase(api, owner, { status: 'deleted' });
      const ask = async (target: string, caller = owner) =>
        withoutRequestId(
          await askEndpoint(api, endpoint, { params: { databaseId: target }, body: bodies[id], caller }),
        );
      const strangers = [callerOf(), { ...owner, mode: 'sandbox' as const }];
      const missing = await ask(uuidv7());
      expect(missing).toMatchObject({ status: 404, body: { code: 'database_not_found' } });
      const answers = await Promise.all([
        ask('no-id'),
        ask(deleted),
        ...strangers.map((caller) => ask(databaseId, caller)),
      ]);
      expect(answers).toEqual(answers.map(() => missing));
    },
  );
});

it('the preflight of a deletion counts the backups that go with it, and gives the refusal of the deletion itself', async () => {
  const id = await givenDatabase(api, owner);
  const preflight = async () => (await api.call('POST', `/v1/databases/${id}/deletion/preflight`)).json;
  expect(await preflight()).toMatchObject({ would: expect.stringContaining('for good'), refusal: null, findings: [] });
  await givenBackup(api, id);
  await givenBackup(api, id, 'failed');
  const detail = expect.stringContaining('Backups that are deleted with it: 1.');
  expect(await preflight()).toMatchObject({
    refusal: null,
    findings: [{ level: 'WARNING', code: 'backups_deleted', detail }],
  });
  const workflowId = workflowIdOf(await api.call('DELETE', `/v1/databases/${id}`));
  expect(await preflight()).toMatchObject({ refusal: { code: 'operation_in_progress', workflow_id: workflowId } });
});

describe('PATCH /v1/databases/{databaseId}', () => {
  it('changes the label and what the customer keeps with the database, and shows no password', async () => {
    const { password: _password, ...made } = (await create(wanted({ metadata: { contract: 'C-1', team: 'web' } })))
      .json as CreatedDatabase;
    expect(made.metadata).toEqual({ contract: 'C-1', team: 'web' });
    const path = `/v1/databases/${made.id}`;
    const changed = await api.call('PATCH', path, {
      body: { label: 'Bakery', metadata: { contract: '', region: 'eu' } },
    });
    expect([changed.status, changed.json]).toEqual([
      200,
      { ...made, label: 'Bakery', metadata: { team: 'web', region: 'eu' } },
    ]);
    expect((await api.call('GET', path)).json).toEqual(changed.json);
    expect(await auditedOf(api, path)).toEqual(['database.create', 'database.update']);
  });

  it('loses no change to one that is made at the same time', async () => {
    const { id } = (await create(wanted())).json as CreatedDatabase;
    const holder = new pg.Client({ connectionString: api.postgres.url });
    await holder.connect();
    const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await holder.query('BEGIN');
    await holder.query(`UPDATE managed_databases SET metadata = '{"theirs":"1"}' WHERE id = $1`, [id]);
    const ours = api.call('PATCH', `/v1/databases/${id}`, { body: { metadata: { ours: '1' } } });
    await until(async () => (await api.rows(waiting)).length > 0, { timeoutMs: 1_500, everyMs: 5 });
    await holder.query('COMMIT');
    await holder.end();
    expect((await ours).json).toMatchObject({ metadata: { theirs: '1', ours: '1' } });
  });
});
