import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { givenSite, startApi } from '../../test/hosting-api';

const owner = callerOf();
const sandbox = { ...owner, mode: 'sandbox' as const };
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner, {
    BACKUPS_S3_ENDPOINT: 'http://127.0.0.1:1',
    BACKUPS_S3_BUCKET: 'backups',
    BACKUPS_S3_READER_ACCESS_KEY_ID: 'drydock',
    BACKUPS_S3_READER_SECRET_ACCESS_KEY: 'a secret of tests',
  });
});
afterAll(() => api.close());

it.each([
  ['live', owner, true, 'object_storage'],
  ['sandbox', sandbox, false, 'worker_host'],
] as const)(
  'a %s backup tells where it will be kept as soon as it is accepted',
  async (_mode, caller, isOffsite, location) => {
    const siteId = await givenSite(api, caller);
    const { status, json } = await api.call('POST', `/v1/sites/${siteId}/backups`, { caller, body: {} });
    const { offsite_enabled, backups } = json as SiteBackupSurface;
    expect([status, offsite_enabled, backups]).toMatchObject([202, isOffsite, [{ status: 'queued', location }]]);
  },
);
