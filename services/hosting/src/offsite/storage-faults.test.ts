/**
 * Makes a customer's storage fail during copies, restores and its configuration.
 *
 * @tier long
 * @processes
 */
import { readdirSync } from 'node:fs';
import type { FaultWish } from '@drydock/emulators';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { makeSite } from '../../test/hosting-world';
import { bucket, customerKey, type OffsiteWorld, openOffsiteWorld, restoreCopy } from '../../test/offsite-world';
import { fillSite, stateOf } from '../../test/site-state';
import { offsiteLimits } from './open-destination';

const xml = (code: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`;
const fixed = (status: number, body: string) => ({ kind: 'fixed' as const, status, body });

describe('a customer’s storage that misbehaves', () => {
  let world: OffsiteWorld;
  beforeAll(async () => {
    world = await openOffsiteWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    world.spawnWorker();
  });
  afterEach(() => world.s3.faults.clear());
  afterAll(() => world.close());

  const strike = (wish: FaultWish): void =>
    world.s3.faults.add({ times: 1, isCarriedOut: false, delayMs: 0, ...wish } as Parameters<
      typeof world.s3.faults.add
    >[0]);
  const given = async (): Promise<{ siteId: string; copyId: string }> => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    await world.configure(siteId);
    const copyId = await world.copy(siteId, 'full');
    await fillSite(world, siteId, 2);
    return { siteId, copyId };
  };

  it.each<[string, FaultWish]>([
    ['fails with 503 three times', { method: 'GET', path: 'segment-', times: 3, answer: fixed(503, xml('SlowDown')) }],
    ['fails with 500 and HTML', { method: 'GET', path: 'index-', times: 2, answer: fixed(500, '<html>oops</html>') }],
    ['cuts connections', { method: 'GET', path: 'segment-', times: 2, answer: { kind: 'reset' } }],
    [
      'sends half of an object',
      { method: 'GET', path: 'segment-', times: 2, answer: { kind: 'truncated', bytes: 100 } },
    ],
  ])('and %s is asked again, and the copy is restored', async (_what, fault) => {
    const { siteId, copyId } = await given();
    strike(fault);
    expect(await restoreCopy(world, siteId, copyId)).toMatchObject({ status: 'succeeded' });
    expect((await stateOf(world, siteId)).page).toBe('200 file=1 row=1');
    expect(world.s3.faults.list()).toEqual([]);
  });

  it('and is away for more attempts than a step has is asked until it is back, and the copy is restored', async () => {
    const { siteId, copyId } = await given();
    strike({ method: 'GET', path: 'segment-', times: 1_000_000, answer: { kind: 'reset' } });
    const restoring = restoreCopy(world, siteId, copyId);
    const fetched = await until(
      async () => {
        // Makes the next attempt due at once, because the pauses between attempts would take minutes.
        await world.api.rows(`UPDATE workflow SET due_at = clock_timestamp(), dispatch_after = clock_timestamp()
          WHERE status IN ('queued', 'running') AND lease_until IS NULL AND due_at > clock_timestamp()`);
        const rows = await world.api.rows<{ attempts: number; is_over: boolean }>(
          `SELECT attempts, direction <> 'forward' AS is_over FROM workflow_step s JOIN workflow w ON w.id = workflow_id
           WHERE kind = 'restore_offsite' AND s.name = 'fetch' AND subject_id = $1`,
          [siteId],
        );
        return rows.find((row) => row.attempts > offsiteLimits.attemptsMax || row.is_over);
      },
      { timeoutMs: 90_000 },
    );
    expect(fetched).toMatchObject({ is_over: false });
    world.s3.faults.clear();
    expect(await restoring).toMatchObject({ status: 'succeeded' });
  });

  it.each<[string, FaultWish]>([
    ['fails with 503 twice', { method: 'PUT', path: 'segment-', times: 2, answer: fixed(503, xml('SlowDown')) }],
    [
      'stores an object and loses the answer',
      { method: 'PUT', path: 'manifest', isCarriedOut: true, answer: { kind: 'reset' } },
    ],
    ['cuts a connection', { method: 'PUT', path: 'index-', answer: { kind: 'reset' } }],
  ])('and %s gets the whole copy in the end, once', async (_what, fault) => {
    const { siteId } = await given();
    strike(fault);
    const copyId = await world.copy(siteId, 'incremental');
    const attempts = new Set(world.keys(`${siteId}/${copyId}/`).map((key) => key.split('/').at(-2)));
    expect(attempts.size).toBe(1);
    expect(await restoreCopy(world, siteId, copyId)).toMatchObject({ status: 'succeeded' });
  });

  it.each<[string, FaultWish, string]>([
    [
      'answers a page of its own',
      { method: 'GET', path: 'segment-', times: 99, answer: fixed(200, '<html>hello</html>') },
      'copy_tampered',
    ],
    ['sends without end', { method: 'GET', path: 'segment-', times: 99, answer: { kind: 'endless' } }, 'copy_tampered'],
    [
      'has lost an object',
      { method: 'GET', path: 'segment-', times: 99, answer: fixed(404, xml('NoSuchKey')) },
      'copy_missing',
    ],
    [
      'takes the key back',
      { method: 'GET', path: 'segment-', times: 99, answer: fixed(403, xml('AccessDenied')) },
      'offsite_credentials_rejected',
    ],
    [
      'redirects into our network',
      {
        method: 'GET',
        path: 'segment-',
        times: 99,
        answer: { kind: 'fixed', status: 307, headers: { location: 'http://169.254.169.254/' }, body: '' },
      },
      'offsite_bucket_unusable',
    ],
  ])('and %s while a copy is fetched fails the restore and leaves the site as it was', async (_what, fault, code) => {
    const { siteId, copyId } = await given();
    const before = await stateOf(world, siteId);
    strike(fault);
    const view = await restoreCopy(world, siteId, copyId);
    expect(view).toMatchObject({ status: 'failed', error: { code } });
    expect(await stateOf(world, siteId)).toEqual(before);
    expect(await world.stateOf(siteId)).toMatchObject({
      last_error_code: code,
      restore: { phase: 'failed', error_code: code },
    });
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ status: 'active' });
    expect(readdirSync(world.spoolDir)).toEqual([]);
  });

  it.each<[string, FaultWish['answer'], number, string]>([
    ['rejects the key', fixed(403, xml('InvalidAccessKeyId')), 422, 'offsite_credentials_rejected'],
    ['has no such bucket any more', fixed(404, xml('NoSuchBucket')), 422, 'offsite_bucket_unusable'],
    ['fails', fixed(500, xml('InternalError')), 503, 'dependency_unavailable'],
    ['is not there', { kind: 'reset' }, 503, 'dependency_unavailable'],
  ])('and %s answers the request itself, and nothing is started', async (_what, answer, status, code) => {
    const { siteId, copyId } = await given();
    strike({ method: 'GET', path: 'manifest', times: 99, answer });
    const refused = await restoreCopy(world, siteId, copyId);
    expect(refused).toMatchObject({ status, json: { code } });
    if (status === 503) expect('headers' in refused && refused.headers['retry-after']).toBe('60');
    expect((await world.stateOf(siteId)).restore).toBeNull();
  });

  it.each<[string, Record<string, string>, string]>([
    ['another secret', { secret_access_key: 'wrong' }, 'offsite_credentials_rejected'],
    ['an unknown key', { access_key_id: 'NOBODY' }, 'offsite_credentials_rejected'],
    ['a bucket that is not there', { bucket: 'no-such-bucket' }, 'offsite_bucket_unusable'],
    ['a name that leads to loopback', { endpoint: 'https://localhost' }, 'offsite_endpoint_refused'],
  ])('is not configured with %s, and what was before stays', async (_what, change, code) => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    const answer = await world.api.call('PUT', `/v1/sites/${siteId}/offsite`, { body: world.place(change) });
    expect([answer.status, answer.json]).toMatchObject([422, { code }]);
    const state = await until(async () => [await world.stateOf(siteId)].find((seen) => !seen.in_progress));
    expect(state).toMatchObject({ configured: true, destination: { bucket, prefix: 'drydock' } });
    expect(world.keys('drydock-probe')).toEqual([]);
    // The only entry in the audit log is that of the first destination.
    expect(
      (await auditedOf(world.api, `/v1/sites/${siteId}`)).filter((action) => action === 'offsite.configure'),
    ).toHaveLength(1);
  });

  it('is not configured by https where http is spoken, and not told to come back later', async () => {
    const siteId = await makeSite(world);
    const endpoint = world.s3.endpoint.replace('http:', 'https:');
    const answer = await world.api.call('PUT', `/v1/sites/${siteId}/offsite`, { body: world.place({ endpoint }) });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'offsite_endpoint_refused' }]);
  });

  it('shows its copies again when it is configured again, and none of another place', async () => {
    const { siteId, copyId } = await given();
    await world.configure(siteId, { prefix: 'elsewhere' });
    expect(await world.stateOf(siteId)).toMatchObject({ copies: [], destination: { prefix: 'elsewhere' } });
    expect((await world.api.call('DELETE', `/v1/sites/${siteId}/offsite`)).status).toBe(204);
    expect(await world.stateOf(siteId)).toMatchObject({ configured: false, copies: [], encryption: null });
    expect(await restoreCopy(world, siteId, copyId)).toMatchObject({
      status: 422,
      json: { code: 'offsite_not_configured' },
    });
    await world.configure(siteId);
    expect((await world.stateOf(siteId)).copies).toMatchObject([{ id: copyId, status: 'completed' }]);
    expect(await restoreCopy(world, siteId, copyId)).toMatchObject({ status: 'succeeded' });
  });

  it('never sees another site’s copy named for this one', async () => {
    const [mine, other] = [await given(), await given()];
    const answers = [
      await restoreCopy(world, mine.siteId, other.copyId),
      await restoreCopy(world, mine.siteId, uuidv7()),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ status: 422, json: { code: 'copy_not_found' } });
  });

  it('has its secret in no answer, and in no table in the clear', async () => {
    const { siteId } = await given();
    const tables = await world.api.rows<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
    );
    for (const { name } of tables) {
      const rows = await world.api.rows<{ text: string }>(`SELECT t::text AS text FROM "${name}" t`);
      expect(rows.filter(({ text }) => text.includes(customerKey.secret_access_key))).toEqual([]);
      expect(
        rows.filter(({ text }) => text.includes(Buffer.from(customerKey.secret_access_key).toString('hex'))),
      ).toEqual([]);
    }
    expect(JSON.stringify(await world.stateOf(siteId))).not.toContain(customerKey.secret_access_key);
  });

  it('takes a copy only while nobody else is at work on the site', async () => {
    const { siteId } = await given();
    const body = { kind: 'incremental' };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => world.api.call('POST', `/v1/sites/${siteId}/offsite/copies`, { body })),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 202)).toHaveLength(1);
    expect(statuses.filter((status) => status === 422)).toHaveLength(4);
    const accepted = answers.find(({ status }) => status === 202);
    expect(await ended(world, accepted?.headers['location'])).toMatchObject({ status: 'succeeded' });
  });
});
