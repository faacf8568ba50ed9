import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSiteHostClient } from '@drydock/agent/clients';
import { type ControlRoute, createControlServer, ok } from '@drydock/agent/control';
import { hostDatabasesSchema, SiteHostError, siteHostProtocol } from '@drydock/agent/site';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { tokenKeys } from '@drydock/service/access';
import { closeServer, listen } from '@drydock/service/http';
import { createLog } from '@drydock/service/telemetry';
import { callerOf, nowhere, type ServiceApi } from '@drydock/service/testing/service-api';
import { newSecret } from '@drydock/testing/secret';
import { uuidv7 } from 'uuidv7';
import { givenDeletedSite } from '../../test/deleted-site';
import { givenSite, startApi } from '../../test/hosting-api';
import { newSiteRef, nextOrder } from '../../test/ssh-order';
import { openVendor } from '../../test/vendor';
import type { SiteHost } from '../providers/site-host';
import { localSiteHost } from '../providers/site-host.local';
import { definitely } from './definite-failure';
import { databaseOf } from './site.rules';

const owner = callerOf();
const silent = `http://${nowhere}`;
/** No test connects to this host, because no worker runs. */
const sshHost = {
  host: '127.0.0.1',
  user: 'sites',
  private_key_file: '/nonexistent',
  host_key_fingerprint: `SHA256:${'A'.repeat(43)}`,
  sites_dir: '/srv/sites',
  database_admin_url: 'mariadb://admin:secret@127.0.0.1/',
  public_url_template: 'https://{site_id}.example.com',
};
const backupsDir = mkdtempSync(path.join(tmpdir(), 'drydock-site-database-'));
const closing: Array<() => Promise<void>> = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  rmSync(backupsDir, { recursive: true, force: true });
});

/**
 * Starts a stand-in for a site agent with these databases. Null makes it an older agent, which cannot list its
 * databases.
 */
async function startHost(databases: SiteDatabase[] | null): Promise<Record<string, string>> {
  const offers: ControlRoute = {
    method: 'GET',
    pattern: /^\/control\/databases$/,
    handle: async () => ok({ databases }),
    readerAnswer: hostDatabasesSchema,
  };
  const { url, readerSecret } = await listenAsHost(databases === null ? [] : [offers]);
  return { SITE_HOST_URL: url, SITE_HOST_READER_SECRET: readerSecret };
}

async function listenAsHost(routes: ControlRoute[]): Promise<{ url: string; secret: string; readerSecret: string }> {
  const [secret, readerSecret] = [newSecret(), newSecret()];
  const server = createControlServer({
    protocol: siteHostProtocol,
    routes,
    keys: tokenKeys(secret),
    readerKeys: tokenKeys(readerSecret),
    log: createLog({ service: 'site-host', level: 'silent' }),
    check: async () => undefined,
  });
  const { url } = await listen(server, 0);
  closing.push(() => closeServer(server));
  return { url, secret, readerSecret };
}

async function apiWith(environment: Record<string, string>): Promise<ServiceApi> {
  const api = await startApi(owner, { BACKUPS_DIR: backupsDir, ...environment });
  closing.push(() => api.close());
  return api;
}

const order = (api: ServiceApi, wanted: object) =>
  api.call('POST', '/v1/sites', { body: { name: 'Shop', primary_domain: `${uuidv7()}.example.com`, ...wanted } });
/**
 * Requests the restore of a deleted site. Resolves with the preflight's refusal code, and the restore's status and
 * code.
 */
async function revive(
  api: ServiceApi,
  database: SiteDatabase,
): Promise<[would: unknown, status: number, code: unknown]> {
  const { id } = await givenDeletedSite(api, backupsDir, owner);
  await api.rows('UPDATE deleted_sites SET database = $1::site_database WHERE id = $2', [database, id]);
  const path = `/v1/sites/deleted/${id}/restore`;
  const { refusal } = (await api.call('POST', `${path}/preflight`)).json as { refusal: { code: string } | null };
  const { status, json } = await api.call('POST', path);
  return [refusal?.code, status, (json as { code?: string }).code];
}
const inputOf = async (api: ServiceApi, siteId: string) =>
  (await api.rows<{ input: object }>('SELECT input FROM workflow WHERE subject_id = $1', [siteId]))[0]?.input;

describe('on a host that has the programs of MariaDB', () => {
  let api: ServiceApi;
  beforeAll(async () => {
    api = await apiWith(await startHost(['postgres', 'mysql']));
  });

  it('a site is shown everywhere with the requested database', async () => {
    const answer = await order(api, { database: 'mysql' });
    expect([answer.status, answer.json]).toMatchObject([202, { platform: 'local', database: 'mysql' }]);
    const { id } = answer.json as { id: string };
    expect((await api.call('GET', `/v1/sites/${id}`)).json).toMatchObject({ database: 'mysql' });
    expect((await api.call('GET', '/v1/sites')).json).toMatchObject({ data: [{ id, database: 'mysql' }] });
    expect(await inputOf(api, id)).toMatchObject({ database: 'mysql' });
  });

  it('a deleted site with MySQL can come back', async () => {
    expect(await revive(api, 'mysql')).toEqual([undefined, 202, undefined]);
  });

  it('an unknown database is an invalid request', async () => {
    expect((await order(api, { database: 'oracle' })).json).toMatchObject({ status: 422, code: 'invalid_request' });
  });
});

describe.each([
  ['without the programs of MariaDB', ['postgres']],
  ['of an earlier release, which cannot list its databases', null],
] as const)('a host %s', (_which, databases) => {
  it('has Postgres for a site, and no MySQL', async () => {
    const api = await apiWith(await startHost(databases === null ? null : [...databases]));
    const refused = await order(api, { database: 'mysql' });
    expect([refused.status, refused.json]).toMatchObject([422, { code: 'site_database_not_offered' }]);
    expect(await api.rows('SELECT 1 FROM sites')).toEqual([]);
    expect((await order(api, { database: 'postgres' })).json).toMatchObject({ database: 'postgres' });
    expect(await revive(api, 'mysql')).toEqual(['site_database_not_offered', 422, 'site_database_not_offered']);
    expect(await revive(api, 'postgres')).toEqual([undefined, 202, undefined]);
  });
});

describe('the worker', () => {
  const said: unknown[] = [];
  let host: SiteHost;
  beforeAll(async () => {
    const refuse: ControlRoute = {
      method: 'PUT',
      pattern: /^\/control\/sites\/[^/]+$/,
      handle: async (_ids, body) => {
        said.push(body);
        throw new SiteHostError('database_not_offered', 'there is no MariaDB');
      },
    };
    const client = createSiteHostClient(await listenAsHost([refuse]));
    closing.push(() => client.close());
    host = localSiteHost({ client, archiveKey: randomBytes(32) });
  });
  const create = (database: SiteDatabase | null): Promise<unknown> =>
    definitely(host.create(newSiteRef(), { domain: 'a.example.com', database }, nextOrder()));

  it('ends the workflow if the programs of the database are gone from the host meanwhile', async () => {
    await expect(create('mysql')).rejects.toMatchObject({ problem: { code: 'site_database_not_offered' } });
    expect(said.pop()).toMatchObject({ domain: 'a.example.com', database: 'mysql' });
  });

  it.each([null, 'postgres'] as const)(
    'sends a host no field that the release before does not know, for %s',
    async (database) => {
      await expect(create(database)).rejects.toThrow('there is no MariaDB');
      expect(said.pop()).not.toHaveProperty('database');
    },
  );
});

describe('while the host does not answer', () => {
  let api: ServiceApi;
  beforeAll(async () => {
    api = await apiWith({ SITE_HOST_URL: silent });
  });

  it('a site with MySQL is not begun: 503 names the host', async () => {
    const answer = await order(api, { database: 'mysql' });
    expect(answer.json).toMatchObject({ status: 503, code: 'dependency_unavailable', dependency: 'site-host' });
    expect(await api.rows('SELECT 1 FROM sites')).toEqual([]);
  });

  it('a deleted site with MySQL is accepted: its restore waits for the host', async () => {
    expect(await revive(api, 'mysql')).toEqual([undefined, 202, undefined]);
  });

  it.each([{}, { database: 'postgres' }])(
    'a site with Postgres is accepted, with an input that workers of the release before read: %j',
    async (wanted) => {
      const answer = await order(api, wanted);
      expect([answer.status, answer.json]).toMatchObject([202, { database: 'postgres' }]);
      const { id, primary_domain: domain } = answer.json as { id: string; primary_domain: string };
      expect(await inputOf(api, id)).toEqual({ domain, platform: 'local' });
    },
  );

  it('a site of the release before has Postgres', async () => {
    const siteId = await givenSite(api, owner);
    expect((await api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ database: 'postgres' });
  });
});

describe.each(['ssh', 'vendor'])('on platform %s', (platform) => {
  it('no database can be requested for a site, and none is shown', async () => {
    const vendor = await openVendor();
    closing.push(() => vendor.close());
    const api = await apiWith({ ...vendor.environment, SITE_HOST_URL: silent, SSH_SITE_HOST: JSON.stringify(sshHost) });
    for (const database of ['postgres', 'mysql']) {
      const answer = await order(api, { platform, database });
      expect([answer.status, answer.json]).toMatchObject([422, { code: 'site_database_not_offered' }]);
    }
    const answer = await order(api, { platform });
    expect([answer.status, answer.json]).toMatchObject([202, { platform, database: null }]);
  });
});

it.each([
  ['local', null, 'postgres'],
  ['local', 'postgres', 'postgres'],
  ['local', 'mysql', 'mysql'],
  ['ssh', null, null],
  ['vendor', null, null],
] as const)('a site of platform %s whose row says %s has %s', (platform, database, expected) => {
  expect(databaseOf({ platform, database })).toBe(expected);
});
