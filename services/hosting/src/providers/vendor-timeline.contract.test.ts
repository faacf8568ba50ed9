import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { openVendor, type TestVendor, vendorContent } from '../../test/vendor';
import { createVendorHttp, type VendorHttp } from './vendor-http';
import type { VendorTimeline } from './vendor-timeline';
import { twentyiTimeline } from './vendor-timeline.twentyi';
import type { VendorItem, VendorItemRef, VendorListing } from './vendor-timeline.types';

/** Every driver must pass these tests. A new driver needs only a line here. */
const drivers: Array<[name: string, open: (http: VendorHttp) => VendorTimeline]> = [['twentyi', twentyiTimeline]];
const web: VendorItemRef = { scope: 'web', id: '' };

describe.each(drivers)('the vendor timeline %s', (_name, open) => {
  let vendor: TestVendor;
  let http: VendorHttp;
  let driver: VendorTimeline;
  beforeAll(async () => {
    vendor = await openVendor();
  });
  beforeEach(() => {
    http = createVendorHttp({ url: vendor.url, key: vendor.keys.live });
    driver = open(http);
  });
  afterEach(async () => {
    await vendor.clearFaults();
    await http.close();
  });
  afterAll(() => vendor.close());

  const newPackage = async (): Promise<string> => {
    const owner = uuidv7();
    const { packageId } = await driver.ensurePackage(owner, `${owner}.example.com`);
    await vendor.fill(packageId, vendorContent(1));
    return packageId;
  };
  const listingOf = async (packageId: string): Promise<VendorListing> => {
    const listing = await driver.read(packageId);
    if (listing === null) throw new Error('the package is not there');
    return listing;
  };
  const named = (items: readonly VendorItem[], name: string): VendorItem => {
    const item = items.find((candidate) => candidate.name === name);
    if (item === undefined) throw new Error(`no ${name}`);
    return item;
  };
  const ended = async (packageId: string, item: VendorItemRef, count: number): Promise<void> => {
    const isOver = async (): Promise<boolean> => {
      const jobs = await driver.listJobs(packageId, item);
      return jobs.length >= count && jobs.every(({ status }) => status !== 'running');
    };
    await until(isOver, { what: `the end of ${count} jobs` });
  };

  it('makes one package for an owner however often it is asked, and none for a domain that is another owner’s', async () => {
    const owner = uuidv7();
    const first = await driver.ensurePackage(owner, `${owner}.example.com`);
    expect(await driver.ensurePackage(owner, `${owner}.example.com`)).toEqual(first);
    expect(await driver.findPackage(owner)).toEqual(first);
    expect(await driver.probe(first.url)).toBe(200);
    await expect(driver.ensurePackage(uuidv7(), `${owner}.example.com`)).rejects.toMatchObject({ fault: 'refused' });
    await driver.removePackage(first.packageId);
    await driver.removePackage(first.packageId);
    expect([await driver.findPackage(owner), await driver.read(first.packageId)]).toEqual([null, null]);
  });

  it('finds a package again whose creation was never answered', async () => {
    await vendor.fault({ method: 'POST', path: 'addWeb', isCarriedOut: true, answer: { kind: 'reset' } });
    const owner = uuidv7();
    await expect(driver.ensurePackage(owner, `${owner}.example.com`)).rejects.toMatchObject({ fault: 'unknown' });
    await driver.ensurePackage(owner, `${owner}.example.com`);
    expect(
      (await vendor.ledger()).filter(({ op, detail }) => op === 'addWeb' && detail === `${owner}.example.com`),
    ).toHaveLength(1);
  });

  it.each([423, 429])(
    'says that a vendor which answers %d is busy, not that somebody else has the domain',
    async (status) => {
      const answer = { kind: 'fixed', status, headers: { 'retry-after': '7' } } as const;
      await vendor.fault({ method: 'POST', path: 'addWeb', answer });
      const owner = uuidv7();
      const domain = `${owner}.example.com`;
      await expect(driver.ensurePackage(owner, domain)).rejects.toMatchObject({ fault: 'busy', retryAfterSeconds: 7 });
      expect(await driver.findPackage(owner)).toBeNull();
      expect(await driver.ensurePackage(owner, domain)).toEqual(await driver.findPackage(owner));
    },
  );

  it('knows nothing of another account’s packages', async () => {
    const packageId = await newPackage();
    const other = createVendorHttp({ url: vendor.url, key: vendor.keys.sandbox });
    expect(await open(other).read(packageId)).toBeNull();
    await other.close();
  });

  it('reads flags, timelines and points as the vendor has them', async () => {
    const packageId = await newPackage();
    await vendor.keepPoints(packageId);
    await vendor.change(packageId, { flags: { pro: true, isFull: true } });
    const { web: site, databases, mailboxes, ...flags } = await listingOf(packageId);
    expect(flags).toEqual({
      isAvailable: true,
      isPermitted: true,
      isPro: true,
      isAttached: true,
      canBackUp: false,
      hasDeadWeb: false,
    });
    expect([site?.points.length, databases.map(({ name }) => name), mailboxes.map(({ name }) => name)]).toEqual([
      1,
      ['shop', 'blog'],
      ['info', 'sales'],
    ]);
  });

  it('brings back one timeline and touches no other', async () => {
    const packageId = await newPackage();
    await vendor.keepPoints(packageId);
    await vendor.fill(packageId, vendorContent(2));
    const shop = named((await listingOf(packageId)).databases, 'shop');
    const item = { scope: 'database', id: shop.id } as const;
    await driver.restore(packageId, { item, name: 'shop', handle: shop.points[0]?.handle ?? '', isBeside: false });
    expect(named((await listingOf(packageId)).databases, 'shop').isRunning).toBe(true);
    await ended(packageId, item, 1);
    const [old, changed] = [vendorContent(1), vendorContent(2)];
    expect(await vendor.content(packageId)).toEqual({
      ...changed,
      databases: { ...changed.databases, shop: old.databases['shop'] },
    });
  });

  it('restores a mailbox beside the original, which stays as it is', async () => {
    const packageId = await newPackage();
    await vendor.keepPoints(packageId);
    await vendor.fill(packageId, vendorContent(2));
    const info = named((await listingOf(packageId)).mailboxes, 'info');
    const item = { scope: 'mailbox', id: info.id } as const;
    await driver.restore(packageId, { item, name: 'info', handle: info.points[0]?.handle ?? '', isBeside: true });
    await ended(packageId, item, 1);
    expect((await vendor.content(packageId)).mailboxes).toEqual({
      ...vendorContent(2).mailboxes,
      'temp-info': vendorContent(1).mailboxes['info'],
    });
  });

  it('takes a snapshot that becomes a point', async () => {
    const packageId = await newPackage();
    await driver.takeSnapshot(packageId, web);
    await expect(driver.takeSnapshot(packageId, web)).rejects.toMatchObject({ fault: 'busy' });
    await ended(packageId, web, 1);
    expect((await listingOf(packageId)).web?.points).toMatchObject([{ kind: 'manual' }]);
  });

  it('tells a job that was reported twice and out of order once, and never as running again', async () => {
    const packageId = await newPackage();
    await driver.takeSnapshot(packageId, web);
    await ended(packageId, web, 1);
    const [job] = (await (
      await fetch(`${vendor.url}/package/${packageId}/web/timelineBackup/web/jobs`, {
        headers: { authorization: `Bearer ${vendor.keys.live}` },
      })
    ).json()) as object[];
    const stale = { ...job, status: 'running', finished: null };
    await vendor.fault({
      path: '/jobs$',
      answer: { kind: 'fixed', status: 200, body: JSON.stringify([job, stale, stale]) },
    });
    expect(await driver.listJobs(packageId, web)).toMatchObject([{ status: 'finished' }]);
  });

  it.each([
    ['500', 'unavailable', { kind: 'fixed', status: 500 }],
    ['503', 'unavailable', { kind: 'fixed', status: 503 }],
    ['HTML', 'not_understood', { kind: 'fixed', status: 200, body: '<html>down for maintenance' }],
    ['another shape', 'not_understood', { kind: 'fixed', status: 200, body: '{"available":"yes"}' }],
    ['half an answer', 'unavailable', { kind: 'truncated', bytes: 40 }],
    ['no answer', 'unavailable', { kind: 'reset' }],
  ] as const)('asks again after %s, and says that it is %s when it stays so', async (_what, fault, answer) => {
    const packageId = await newPackage();
    await vendor.fault({ method: 'GET', path: 'timelineBackup$', times: 2, isCarriedOut: true, answer });
    expect(await driver.read(packageId)).toMatchObject({ isAvailable: true });
    await vendor.fault({ method: 'GET', path: 'timelineBackup$', times: 3, isCarriedOut: true, answer });
    await expect(driver.read(packageId)).rejects.toMatchObject({ fault });
  });

  it('stops reading an answer that is larger than any real one, and does not ask for it again', async () => {
    const packageId = await newPackage();
    const before = (await vendor.calls()).length;
    await vendor.fault({ method: 'GET', path: '/jobs$', times: 3, answer: { kind: 'endless' } });
    await expect(driver.listJobs(packageId, web)).rejects.toMatchObject({ fault: 'not_understood' });
    expect((await vendor.calls()).slice(before)).toHaveLength(1);
  });

  it('reads the timelines of 150 mailboxes with 90 points each', async () => {
    const packageId = await newPackage();
    const taken = new Date(1_700_000_000_000).toISOString();
    const snapshots = Array.from({ length: 90 }, (_, at) => ({
      restoreAsOf: 1_700_000_000 + at,
      taken,
      kind: 'automatic',
    }));
    const mailboxes = Array.from({ length: 150 }, (_, at) => ({
      ...{ id: `m-${at}`, name: `mailbox-${at}`, dead: false, restorable: true, running: false },
      snapshots,
    }));
    await vendor.fault({
      method: 'GET',
      path: 'timelineBackup$',
      times: 3,
      answer: { kind: 'edited', set: { mailboxes } },
    });
    const read = await listingOf(packageId);
    expect([read.mailboxes.length, read.mailboxes.at(-1)?.points.length]).toEqual([150, 90]);
  });

  it('finds a package in a listing of several megabytes', async () => {
    const owner = uuidv7();
    const made = await driver.ensurePackage(owner, `${owner}.example.com`);
    const name = 'n'.repeat(3_000_000);
    await vendor.fault({
      method: 'GET',
      path: '^/package$',
      times: 3,
      answer: { kind: 'edited', set: { '0.name': name } },
    });
    expect(await driver.findPackage(owner)).toEqual(made);
  });

  it('finds a package by its known id without the listing, and never one of another owner', async () => {
    const [owner, other] = [uuidv7(), uuidv7()];
    const made = await driver.ensurePackage(owner, `${owner}.example.com`);
    const before = (await vendor.calls()).length;
    expect(await driver.findPackage(owner, undefined, made.packageId)).toEqual(made);
    expect((await vendor.calls()).slice(before).map(({ path }) => path)).toEqual([`/package/${made.packageId}`]);
    expect(await driver.findPackage(other, undefined, made.packageId)).toBeNull();
    expect(await driver.findPackage(owner, undefined, '999999')).toEqual(made);
  });

  it('opens no circuit for answers that it does not understand, so one package stops no other', async () => {
    const [odd, other] = [await newPackage(), await newPackage()];
    const answer = { kind: 'fixed', status: 200, body: '{"available":"yes"}' } as const;
    await vendor.fault({ method: 'GET', path: `/${odd}/web/timelineBackup$`, times: 12, answer });
    for (let time = 0; time < 4; time += 1)
      await expect(driver.read(odd)).rejects.toMatchObject({ fault: 'not_understood' });
    expect(await driver.read(other)).toMatchObject({ isAvailable: true });
  });

  it.each([
    ['500', { kind: 'fixed', status: 500 }],
    ['HTML', { kind: 'fixed', status: 200, body: '<html>' }],
    ['half an answer', { kind: 'truncated', bytes: 3 }],
    ['no answer', { kind: 'reset' }],
    ['a redirect', { kind: 'fixed', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
    ['another shape', { kind: 'fixed', status: 202, body: '{"result":7}' }],
  ] as const)('does not know what became of a change after %s, and does not send it again', async (_what, answer) => {
    const packageId = await newPackage();
    await vendor.fault({ method: 'POST', path: 'takeSnapshot$', isCarriedOut: true, answer });
    await expect(driver.takeSnapshot(packageId, web)).rejects.toMatchObject({ fault: 'unknown' });
    const sent = (await vendor.calls()).filter(
      ({ method, path }) => method === 'POST' && path.includes(`/${packageId}/`),
    );
    expect(sent).toHaveLength(1);
    expect(await driver.listJobs(packageId, web)).toHaveLength(1);
  });

  it.each([
    [409, 'busy', 2],
    [423, 'busy', 2],
    [429, 'busy', 2],
    [422, 'refused', 2],
    [401, 'denied', 2],
    [404, 'not_found', 2],
  ])('tells %d as %s', async (status, fault, retryAfterSeconds) => {
    await vendor.fault({ method: 'POST', path: 'takeSnapshot$', answer: { kind: 'fixed', status } });
    await expect(driver.takeSnapshot('1', web)).rejects.toMatchObject({ fault, retryAfterSeconds });
  });

  it('follows no redirect, wherever it leads', async () => {
    const packageId = await newPackage();
    const before = (await vendor.calls()).length;
    const location = `${vendor.url}/package`;
    await vendor.fault({
      method: 'GET',
      path: 'timelineBackup$',
      times: 3,
      answer: { kind: 'fixed', status: 302, headers: { location } },
    });
    await expect(driver.read(packageId)).rejects.toMatchObject({ fault: 'unavailable' });
    const asked = (await vendor.calls()).slice(before).map(({ path }) => path.split('/').at(-1));
    expect(asked).toEqual(['timelineBackup', 'timelineBackup', 'timelineBackup']);
  });

  it('opens its circuit when the vendor is down: nothing more is sent, and the caller is told when to come back', async () => {
    const packageId = await newPackage();
    await vendor.fault({ path: '/package/', times: 100, answer: { kind: 'fixed', status: 503 } });
    for (let time = 0; time < 2; time += 1) await driver.read(packageId).catch(() => undefined);
    const before = (await vendor.calls()).length;
    await expect(driver.read(packageId)).rejects.toMatchObject({ fault: 'unavailable', retryAfterSeconds: 30 });
    expect(await vendor.calls()).toHaveLength(before);
  });

  it('gives up on an answer that drips', async () => {
    const packageId = await newPackage();
    await vendor.fault({ method: 'POST', path: 'takeSnapshot$', answer: { kind: 'drip', intervalMs: 2_000 } });
    await expect(driver.takeSnapshot(packageId, web)).rejects.toMatchObject({ fault: 'unknown' });
  });
});
