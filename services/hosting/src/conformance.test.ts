import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { SiteOffsite } from '@drydock/contracts/hosting/offsite';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import type { RunningS3 } from '@drydock/emulators';
import { conformanceChecks, conformanceLimitMs } from '@drydock/service/testing/conformance';
import { type ConformanceWorld, giveMetadata, type Things } from '@drydock/service/testing/conformance-rule';
import { givenWorkflow, standInForWorkers, statusFor } from '@drydock/service/testing/conformance-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { givenDeletedSite } from '../test/deleted-site';
import { givenCopy, startCustomerStorage } from '../test/given-copy';
import { givenVendorSite } from '../test/given-vendor-site';
import { giveNoTimeToStart, givenBackup, givenSite, startApi } from '../test/hosting-api';
import { openVendor, type TestVendor } from '../test/vendor';
import { deletedSiteSubject } from './deleted-sites/deleted-site.rules';
import { siteSubject } from './sites/site.types';

const owner = callerOf();
type Caller = typeof owner;
const backupsDir = mkdtempSync(path.join(tmpdir(), 'drydock-conformance-'));
let vendor: TestVendor;
let storage: RunningS3;
let api: ServiceApi;
let world: ConformanceWorld;
beforeAll(async () => {
  vendor = await openVendor();
  storage = await startCustomerStorage();
  api = await startApi(owner, {
    BACKUPS_DIR: backupsDir,
    SITES_PER_ORGANISATION: '10000',
    DRYDOCK_OFFSITE_ALLOW: new URL(storage.endpoint).host,
    ...vendor.environment,
  });
  await giveNoTimeToStart(api);
  await standInForWorkers(api, { vendor_take_snapshot: {}, vendor_restore: {} });
  world = {
    call: api.call,
    owner,
    strangers: [callerOf(), { ...owner, mode: 'sandbox' }],
    makeThings,
    // No site agent runs, so no application is known. No worker runs, so no storage of a customer can be probed.
    cannotSucceed: {
      getSiteStorage: '503 dependency_unavailable',
      getSiteApp: '503 dependency_unavailable',
      restartSiteApp: '503 dependency_unavailable',
      putSiteOffsite: '503 dependency_unavailable',
    },
  };
});
afterAll(async () => {
  await api.close();
  await vendor.close();
  await storage.close();
  rmSync(backupsDir, { recursive: true, force: true });
});

async function makeThings(caller: Caller, endpoint: EndpointDefinition): Promise<Things> {
  const { id: deletedSiteId } = await givenDeletedSite(api, backupsDir, caller);
  const { siteId, fields } = await makeSite(caller, endpoint);
  const subject = endpoint.path.includes('{deletedSiteId}') ? deletedSiteSubject(deletedSiteId) : siteSubject(siteId);
  const workflowId = await givenWorkflow(api, caller, {
    kind: 'take_backup',
    subject,
    input: {},
    status: statusFor(endpoint),
  });
  return {
    params: {
      siteId,
      deletedSiteId,
      workflowId,
      backupId: fields['backup_id'] ?? '',
      copyId: fields['copy_id'] ?? '',
      orgId: caller.orgId,
    },
    fields: { ...fields, primary_domain: `${uuidv7()}.example.com`, endpoint: storage.endpoint },
  };
}

/** Makes a site on which a request of the operation succeeds. Resolves with the fields of that request. */
async function makeSite(
  caller: Caller,
  { path: about }: EndpointDefinition,
): Promise<{ siteId: string; fields: Record<string, string | undefined> }> {
  if (about.includes('/vendor-snapshots')) {
    const { siteId, timestamp } = await givenVendorSite(api, vendor, caller);
    return { siteId, fields: { scope: 'web', timestamp, item_id: undefined } };
  }
  const siteId = await givenSite(api, caller);
  await giveMetadata(api, 'sites', siteId);
  if (about.includes('/offsite')) return { siteId, fields: { copy_id: await givenCopy(api, storage, caller, siteId) } };
  return { siteId, fields: { backup_id: await givenBackup(api, caller, siteId) } };
}

it('the copies of a site page by limit and cursor, newest first', async () => {
  const siteId = await givenSite(api, owner);
  const [older, newer] = [await givenCopy(api, storage, owner, siteId), uuidv7()];
  await api.rows(
    `INSERT INTO offsite_copies (id, destination_id, site_id, org_id, mode, kind, status, sequence, workflow_id, error_code)
     SELECT $2, destination_id, site_id, org_id, mode, 'full', 'failed', 2, $2, 'step_failed' FROM offsite_copies WHERE id = $1`,
    [older, newer],
  );
  const read = async (search: string): Promise<SiteOffsite> =>
    (await api.call('GET', `/v1/sites/${siteId}/offsite${search}`, { caller: owner })).json as SiteOffsite;
  const idsOf = ({ copies }: SiteOffsite): string[] => copies.map(({ id }) => id);
  const first = await read('?limit=1');
  const second = await read(`?limit=1&cursor=${first.page.next_cursor}`);
  expect([idsOf(await read('')), idsOf(first), idsOf(second)]).toEqual([[newer, older], [newer], [older]]);
  expect(second).toMatchObject({
    page: { limit: 1, has_more: false, next_cursor: null },
    last_copy_at: first.last_copy_at,
  });
});

describe('every operation of hosting', () => {
  // Each check contains its own expectations.
  // oxlint-disable-next-line jest/expect-expect
  it.each(conformanceChecks('hosting').map((check) => [check.name, check] as const))(
    '%s',
    (_name, check) => check.run(world),
    conformanceLimitMs,
  );
});
