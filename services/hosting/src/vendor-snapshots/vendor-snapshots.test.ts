/** @processes */
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { makeSite } from '../../test/hosting-world';
import { vendorContent } from '../../test/vendor';
import {
  atRest,
  auditOf,
  donesOf,
  makeVendorSite,
  openVendorWorld,
  restore,
  snapshotsPath,
  surfaceOf,
  type VendorSite,
  type VendorWorld,
} from '../../test/vendor-world';

const owner = callerOf();
let world: VendorWorld;
beforeAll(async () => {
  world = await openVendorWorld('postgres', owner);
  world.spawnWorker();
});
afterEach(() => world.vendor.clearFaults());
afterAll(() => world.close());

const webPoint = async (siteId: string): Promise<string> =>
  (await surfaceOf(world, siteId)).web?.points[0]?.timestamp ?? '';
const named = async (siteId: string, list: 'databases' | 'mailboxes', name: string) => {
  const item = (await surfaceOf(world, siteId))[list].find((candidate) => candidate.name === name);
  return { item_id: item?.item_id ?? '', timestamp: item?.points[0]?.timestamp ?? '' };
};

const preflight = async (siteId: string, body: object) => {
  const answer = await world.api.call('POST', `${snapshotsPath(siteId)}/restore/preflight`, { body });
  expect(answer.status).toBe(200);
  return answer.json as Preflight;
};

describe('the surface', () => {
  it('has each flag as the vendor gives it', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    await world.vendor.change(packageId, {
      flags: { pro: true, permitted: false },
      item: { scope: 'web', id: '', isDead: true, isRestorable: false },
    });
    const surface = await surfaceOf(world, siteId);
    expect(surface).toMatchObject({
      available: true,
      permitted: false,
      pro: true,
      attached: true,
      can_back_up: false,
      has_dead_web: true,
      in_progress: false,
      web: { item_id: '', dead: true, restorable: false, points: [{ kind: 'automatic' }] },
      databases: [{ name: 'shop' }, { name: 'blog' }],
      mailboxes: [{ item_id: 'info', name: 'info' }, { name: 'sales' }],
    });
  });

  it('of a site on a platform without timelines is empty, and a restore there finds no package', async () => {
    const siteId = await makeSite(world);
    expect(await surfaceOf(world, siteId)).toMatchObject({ available: false, web: null, databases: [] });
    const answer = await restore(world, siteId, { scope: 'web', timestamp: '1' });
    expect([answer.status, answer.json]).toMatchObject([404, { code: 'no_vendor_package' }]);
  });

  it('answers 503 with a pause while the vendor does not answer', async () => {
    const { siteId } = await makeVendorSite(world);
    await world.vendor.fault({ path: 'timelineBackup$', times: 3, answer: { kind: 'fixed', status: 502 } });
    const answer = await world.api.call('GET', snapshotsPath(siteId));
    expect([answer.status, answer.headers['retry-after'], answer.json]).toMatchObject([
      503,
      '30',
      { code: 'dependency_unavailable', dependency: 'vendor' },
    ]);
  });
});

describe('POST /v1/sites/{siteId}/vendor-snapshots/restore', () => {
  it('rolls the website back to the named point, and nothing else', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const answer = await restore(world, siteId, { scope: 'web', timestamp: await webPoint(siteId) });
    expect([answer.status, answer.headers['retry-after'], answer.json]).toMatchObject([
      202,
      '1',
      { in_progress: true, available: true },
    ]);
    expect(await auditOf(world, siteId, 'vendor_snapshot.restore')).toBe(1);
    await atRest(world, siteId);
    expect(await world.vendor.content(packageId)).toEqual({ ...vendorContent(2), web: vendorContent(1).web });
    expect(await ended(world, answer.headers['location'])).toMatchObject({
      kind: 'vendor_restore',
      status: 'succeeded',
      progress: 100,
    });
  });

  it('rolls one database back', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const answer = await restore(world, siteId, { scope: 'database', ...(await named(siteId, 'databases', 'blog')) });
    expect(answer.status).toBe(202);
    await atRest(world, siteId);
    const [old, changed] = [vendorContent(1), vendorContent(2)];
    const databases = { ...changed.databases, blog: old.databases['blog'] };
    expect(await world.vendor.content(packageId)).toEqual({ ...changed, databases });
  });

  it('leaves the original mailbox alone when it restores beside it', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const wish = { scope: 'mailbox', ...(await named(siteId, 'mailboxes', 'info')), temp_mailbox: true };
    expect((await restore(world, siteId, wish)).status).toBe(202);
    const { mailboxes } = await atRest(world, siteId);
    expect(mailboxes.map(({ name }) => name)).toContain('temp-info');
    const mail = { ...vendorContent(2).mailboxes, 'temp-info': vendorContent(1).mailboxes['info'] };
    expect(await world.vendor.content(packageId)).toEqual({ ...vendorContent(2), mailboxes: mail });
  });

  it('overwrites no other mailbox beside the original: a taken name gets a number', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const content = vendorContent(2);
    const kept = { 'cur/5:2,S': 'mail of somebody who is called so' };
    await world.vendor.fill(packageId, { ...content, mailboxes: { ...content.mailboxes, 'temp-info': kept } });
    const wish = { scope: 'mailbox', ...(await named(siteId, 'mailboxes', 'info')), temp_mailbox: true };
    expect((await restore(world, siteId, wish)).status).toBe(202);
    await atRest(world, siteId);
    const { mailboxes } = await world.vendor.content(packageId);
    expect(mailboxes).toEqual({
      ...content.mailboxes,
      'temp-info': kept,
      'temp-2-info': vendorContent(1).mailboxes['info'],
    });
  });

  it('is foretold by its preflight, which changes nothing', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const before = await world.vendor.content(packageId);
    const timestamp = await webPoint(siteId);
    const web = { scope: 'web', timestamp };
    expect(await preflight(siteId, web)).toMatchObject({
      would: expect.stringMatching(/^Have the platform overwrite the website of /),
      ...{ resource: `/v1/sites/${siteId}`, refusal: null, undo: false, space: null },
      point: {
        id: timestamp,
        taken_at: (await surfaceOf(world, siteId)).web?.points[0]?.taken_at,
        age_seconds: expect.any(Number),
      },
      findings: [{ level: 'WARNING', code: 'no_safety_copy' }],
    });
    const beside = { scope: 'mailbox', ...(await named(siteId, 'mailboxes', 'info')), temp_mailbox: true };
    expect(await preflight(siteId, beside)).toMatchObject({
      would: expect.stringMatching(/beside the live one, as temp-info; the live one stays$/),
      ...{ refusal: null, findings: [] },
    });
    expect(await world.vendor.content(packageId)).toEqual(before);
    expect(await donesOf(world, packageId)).toEqual([]);
  });

  it('stays in progress until the vendor’s own job has ended, and takes nothing else meanwhile', async () => {
    const { siteId } = await makeVendorSite(world);
    const timestamp = await webPoint(siteId);
    await world.vendor.setClock({ scale: 0 });
    const answer = await restore(world, siteId, { scope: 'web', timestamp });
    const workflowId = workflowIdOf(answer);
    expect((await surfaceOf(world, siteId)).web).toMatchObject({ in_progress: true });
    const again = await restore(world, siteId, { scope: 'web', timestamp });
    expect([again.status, again.json]).toMatchObject([422, { code: 'operation_in_progress', workflow_id: workflowId }]);
    await world.vendor.setClock({ scale: 100 });
    await atRest(world, siteId);
    expect(await ended(world, answer.headers['location'])).toMatchObject({ status: 'succeeded' });
  });

  it('refuses in the order of the codes, sends nothing and writes no audit entry', async () => {
    const site = await makeVendorSite(world);
    const { siteId, packageId } = site;
    const shop = await named(siteId, 'databases', 'shop');
    const web = await webPoint(siteId);
    const refusedAs = async (body: object, code: string) => {
      const answer = await restore(world, siteId, body);
      expect([answer.status, answer.json]).toMatchObject([422, { code }]);
      expect(await preflight(siteId, body)).toMatchObject({ refusal: { status: 422, code } });
    };
    await refusedAs({ scope: 'web', timestamp: '12345' }, 'restore_point_stale');
    await refusedAs({ scope: 'database', timestamp: shop.timestamp, item_id: 'none' }, 'restore_point_stale');
    await refusedAs({ scope: 'database', timestamp: shop.timestamp }, 'item_required');
    // Fields that do not fit the scope are refused before the point is looked for in the listing.
    await refusedAs({ scope: 'database', timestamp: '12345' }, 'item_required');
    await refusedAs({ scope: 'web', timestamp: '12345', item_id: 'x' }, 'item_not_allowed');
    await refusedAs({ scope: 'web', timestamp: web, item_id: shop.item_id }, 'item_not_allowed');
    await refusedAs({ scope: 'web', timestamp: web, temp_mailbox: true }, 'temp_mailbox_not_allowed');
    await refusedAs({ scope: 'database', ...shop, temp_mailbox: true }, 'temp_mailbox_not_allowed');
    await world.vendor.change(packageId, { item: { scope: 'database', id: shop.item_id, isRestorable: false } });
    await refusedAs({ scope: 'database', ...shop, temp_mailbox: true }, 'temp_mailbox_not_allowed');
    await refusedAs({ scope: 'database', ...shop }, 'scope_not_restorable');
    expect(await donesOf(world, packageId)).toEqual([]);
    expect(await auditOf(world, siteId, 'vendor_snapshot.restore')).toBe(0);
    expect(
      await world.api.rows("SELECT 1 FROM workflow WHERE subject_id = $1 AND kind = 'vendor_restore'", [siteId]),
    ).toHaveLength(0);
  });

  it('answers another site’s point and item as ones that do not exist', async () => {
    const [mine, other]: VendorSite[] = [await makeVendorSite(world), await makeVendorSite(world)];
    const foreign = await named(other?.siteId ?? '', 'databases', 'shop');
    const answer = await restore(world, mine?.siteId ?? '', { scope: 'database', ...foreign });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'restore_point_stale' }]);
  });

  it.each([
    [{}],
    [{ scope: 'web' }],
    [{ scope: 'all', timestamp: '1' }],
    [{ scope: 'web', timestamp: 1 }],
    [{ scope: 'web', timestamp: '1', force: true }],
    [{ scope: 'web', timestamp: { not: '' } }],
    [{ scope: 'web', timestamp: '1', temp_mailbox: 'yes' }],
  ])('refuses the body %j', async (body) => {
    const answer = await restore(world, uuidv7(), body);
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'invalid_request' }]);
  });

  it('replays its answer for the same Idempotency-Key, and restores once', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const [body, idempotencyKey] = [{ scope: 'web', timestamp: await webPoint(siteId) }, uuidv7()];
    const [first, second] = await Promise.all([1, 2].map(() => restore(world, siteId, body, { idempotencyKey })));
    expect([first?.status, second?.text, second?.headers['location']]).toEqual([
      202,
      first?.text,
      first?.headers['location'],
    ]);
    await atRest(world, siteId);
    expect(await donesOf(world, packageId)).toEqual(['restore']);
  });
});

describe('POST /v1/sites/{siteId}/vendor-snapshots', () => {
  it('has the vendor take a snapshot, which becomes a point', async () => {
    const { siteId } = await makeVendorSite(world);
    const answer = await world.api.call('POST', snapshotsPath(siteId), { body: { scope: 'web' } });
    expect([answer.status, answer.json]).toMatchObject([202, { in_progress: true, can_back_up: false }]);
    const { web, can_back_up: canBackUp } = await atRest(world, siteId);
    expect([canBackUp, web?.points.map(({ kind }) => kind)]).toEqual([true, ['manual', 'automatic']]);
    expect(await auditOf(world, siteId, 'vendor_snapshot.take')).toBe(1);
  });

  it('refuses what the vendor does not take', async () => {
    const { siteId, packageId } = await makeVendorSite(world);
    const refusedAs = async (body: object, code: string) =>
      expect((await world.api.call('POST', snapshotsPath(siteId), { body })).json).toMatchObject({ code });
    await refusedAs({ scope: 'mailbox', item_id: 'info' }, 'snapshot_unavailable');
    await refusedAs({ scope: 'database' }, 'item_required');
    await refusedAs({ scope: 'database', item_id: '1' }, 'item_not_found');
    await refusedAs({ scope: 'web', item_id: '1' }, 'item_not_allowed');
    await world.vendor.change(packageId, { flags: { attached: false } });
    await refusedAs({ scope: 'web' }, 'snapshot_unavailable');
    expect(await donesOf(world, packageId)).toEqual([]);
  });
});

describe('who may', () => {
  const strangers = [
    ['another organisation', callerOf()],
    ['the other mode', { ...owner, mode: 'sandbox' as const }],
  ] as const;
  it.each(strangers)('%s finds no such site', async (_who, caller) => {
    const { siteId } = await makeVendorSite(world);
    const calls: Array<[string, string, object | undefined]> = [
      ['GET', '', undefined],
      ['POST', '', { scope: 'web' }],
      ['POST', '/restore', { scope: 'web', timestamp: '1' }],
    ];
    for (const [method, rest, body] of calls) {
      const answer = await world.api.call(method, `${snapshotsPath(siteId)}${rest}`, { caller, body });
      expect([answer.status, answer.json]).toMatchObject([404, { code: 'site_not_found' }]);
    }
  });

  it('names the missing permission before it looks at anything', async () => {
    const caller = { ...owner, scopes: owner.scopes.filter((scope) => scope !== 'hosting.backup.manage') };
    const answer = await restore(world, 'nonsense', { x: 1 }, { caller });
    expect([answer.status, answer.json]).toMatchObject([403, { errors: [{ detail: 'hosting.backup.manage' }] }]);
  });
});
