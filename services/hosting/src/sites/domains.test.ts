import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { SiteDomain } from '@drydock/contracts/hosting/site-domain';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type GivenDeletion, givenDeletedSite } from '../../test/deleted-site';
import { givenSite, startApi } from '../../test/hosting-api';
import { type NameServer, startNameServer } from '../../test/name-server';
import { openVendor, type TestVendor } from '../../test/vendor';

const [victim, attacker] = [callerOf(), callerOf()];
const backupsDir = mkdtempSync(path.join(tmpdir(), 'drydock-domains-'));
let names: NameServer;
let vendor: TestVendor;
let api: ServiceApi;
beforeAll(async () => {
  [names, vendor] = await Promise.all([startNameServer(), openVendor()]);
  api = await startApi(victim, {
    BACKUPS_DIR: backupsDir,
    DOMAIN_PROOF: 'required',
    DOMAIN_NAME_SERVERS: names.address,
    ...vendor.environment,
  });
});
afterAll(async () => {
  await api.close();
  await Promise.all([names.close(), vendor.close()]);
  rmSync(backupsDir, { recursive: true, force: true });
});

type Caller = typeof victim;
const newDomain = () => `d${uuidv7().replaceAll('-', '')}.example.test`;
const create = (caller: Caller, domain: string, more: object = {}) =>
  api.call('POST', '/v1/sites', { caller, body: { name: 'Shop', primary_domain: domain, ...more } });
const made = async (caller: Caller, domain: string): Promise<string> =>
  ((await create(caller, domain)).json as { id: string }).id;
const read = async (caller: Caller, siteId: string) =>
  (await api.call('GET', `/v1/sites/${siteId}/domain`, { caller })).json as SiteDomain;
const prove = (caller: Caller, siteId: string) => api.call('POST', `/v1/sites/${siteId}/domain/prove`, { caller });
const show = async (caller: Caller, siteId: string): Promise<void> => {
  const { dns } = (await read(caller, siteId)).proofs;
  names.records.set(dns.name, [...(names.records.get(dns.name) ?? []), dns.value]);
};

describe('a domain belongs to the site that proves it', () => {
  it('a claim is told its proof, is refused until the proof is shown, and is proven then', async () => {
    const siteId = await made(victim, newDomain());
    expect(await read(victim, siteId)).toMatchObject({ status: 'unproven', proven_at: null });
    const refused = await prove(victim, siteId);
    expect([refused.status, refused.json]).toMatchObject([422, { code: 'domain_not_proven' }]);
    await show(victim, siteId);
    const proven = await prove(victim, siteId);
    expect([proven.status, proven.json]).toMatchObject([200, { status: 'proven' }]);
    expect(await read(victim, siteId)).toEqual(proven.json);
    expect((await prove(victim, siteId)).json).toEqual(proven.json);
    expect(await auditedOf(api, `/v1/sites/${siteId}`)).toEqual(['site.create', 'site.domain.prove']);
  });

  it('an unproven claim keeps nobody from the domain', async () => {
    const domain = newDomain();
    const squatted = await made(attacker, domain);
    const siteId = await made(victim, domain);
    await show(victim, siteId);
    expect((await prove(victim, siteId)).status).toBe(200);
    expect((await prove(attacker, squatted)).json).toMatchObject({ code: 'domain_not_proven' });
  });

  it('an answer to a stranger is the same whether the domain is another’s, proven or not, or nobody’s', async () => {
    const [proven, claimed] = [newDomain(), newDomain()];
    const siteId = await made(victim, proven);
    await show(victim, siteId);
    await prove(victim, siteId);
    await made(victim, claimed);
    const answers = await Promise.all([proven, claimed, newDomain()].map((domain) => create(attacker, domain)));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
    const proofs = await Promise.all(answers.map(({ json }) => prove(attacker, (json as { id: string }).id)));
    expect(new Set(proofs.map((answer) => JSON.stringify(withoutRequestId(answer).body))).size).toBe(1);
  });

  it('an organisation names a domain once', async () => {
    const domain = newDomain();
    await made(victim, domain);
    expect((await create(victim, domain)).json).toMatchObject({ code: 'domain_in_use' });
  });

  it('a domain that changed hands goes to the new proof once the former proof is gone, and not before', async () => {
    const domain = newDomain();
    const former = await made(victim, domain);
    await show(victim, former);
    await prove(victim, former);
    const next = await made(attacker, domain);
    await show(attacker, next);
    expect((await prove(attacker, next)).json).toMatchObject({ code: 'domain_in_use' });
    const { dns } = (await read(attacker, next)).proofs;
    names.records.set(dns.name, [dns.value]);
    expect((await prove(attacker, next)).status).toBe(200);
    expect(await read(victim, former)).toMatchObject({ status: 'unproven' });
  });

  it('of two sites that show a proof at once one gets the domain', async () => {
    const domain = newDomain();
    const ids = [await made(victim, domain), await made(attacker, domain)] as const;
    await show(victim, ids[0]);
    await show(attacker, ids[1]);
    const answers = await Promise.all([prove(victim, ids[0]), prove(attacker, ids[1])]);
    expect(answers.map(({ status }) => status).sort((one, other) => one - other)).toEqual([200, 422]);
    expect(
      await api.rows('SELECT 1 FROM sites WHERE primary_domain = $1 AND domain_proven_at IS NOT NULL', [domain]),
    ).toHaveLength(1);
  });

  it('the sandbox asks for no proof, and the first site gets the domain', async () => {
    const domain = newDomain();
    const [one, other] = [victim, attacker].map((caller) => ({ ...caller, mode: 'sandbox' as const })) as [
      Caller,
      Caller,
    ];
    expect(await read(one, await made(one, domain))).toMatchObject({ status: 'proven' });
    expect((await create(other, domain)).json).toMatchObject({ code: 'domain_in_use' });
  });

  it('a vendor, which gives a domain to the first customer, hears of no domain that is not proven', async () => {
    const domain = newDomain();
    const refused = await create(attacker, domain, { platform: 'vendor' });
    expect([refused.status, refused.json]).toMatchObject([422, { code: 'domain_not_proven' }]);
    const { proofs } = refused.json as unknown as SiteDomain;
    names.records.set(proofs.dns.name, [proofs.dns.value]);
    expect((await create(attacker, domain, { platform: 'vendor' })).status).toBe(202);
  });

  it('a site of a vendor gets a domain that changed hands once the former proof is gone, and not before', async () => {
    const domain = newDomain();
    const former = await made(victim, domain);
    await show(victim, former);
    await prove(victim, former);
    const { proofs } = (await create(attacker, domain, { platform: 'vendor' })).json as unknown as SiteDomain;
    const theirs = names.records.get(proofs.dns.name) ?? [];
    names.records.set(proofs.dns.name, [...theirs, proofs.dns.value]);
    const refused = await create(attacker, domain, { platform: 'vendor' });
    expect([refused.status, refused.json]).toMatchObject([422, { code: 'domain_in_use' }]);
    expect(await read(victim, former)).toMatchObject({ status: 'proven' });
    names.records.set(proofs.dns.name, [proofs.dns.value]);
    const next = await create(attacker, domain, { platform: 'vendor' });
    expect(next.status).toBe(202);
    expect(await read(attacker, (next.json as { id: string }).id)).toMatchObject({ status: 'proven' });
    expect(await read(victim, former)).toMatchObject({ status: 'unproven' });
  });

  it('a refused creation takes no domain from anybody', async () => {
    const domain = newDomain();
    const former = await made(victim, domain);
    await show(victim, former);
    await prove(victim, former);
    await made(attacker, domain);
    const { dns } = (await read(victim, former)).proofs;
    names.records.delete(dns.name);
    const { proofs } = (await create(attacker, domain, { platform: 'vendor' })).json as unknown as SiteDomain;
    names.records.set(proofs.dns.name, [proofs.dns.value]);
    // The organisation has another site of this domain already.
    const refused = await create(attacker, domain, { platform: 'vendor' });
    expect([refused.status, refused.json]).toMatchObject([422, { code: 'domain_in_use' }]);
    expect(await read(victim, former)).toMatchObject({ status: 'proven' });
  });
});

describe('another organisation’s site', () => {
  it('gives the answer of a missing site', async () => {
    const siteId = await givenSite(api, victim);
    const missing = `/v1/sites/${uuidv7()}`;
    for (const [method, rest] of [
      ['GET', '/domain'],
      ['POST', '/domain/prove'],
    ] as const) {
      const theirs = await api.call(method, `/v1/sites/${siteId}${rest}`, { caller: attacker });
      const none = await api.call(method, `${missing}${rest}`, { caller: attacker });
      expect(refusalOf(theirs)).toEqual(refusalOf(none));
      expect(theirs.status).toBe(404);
    }
  });
});

describe('a deleted site', () => {
  const deleted = (given: GivenDeletion) => givenDeletedSite(api, backupsDir, victim, given);
  const reasonOf = async (id: string) =>
    ((await api.call('GET', `/v1/sites/deleted/${id}`, { caller: victim })).json as { reason_code: string })
      .reason_code;
  const listedReasonOf = async (id: string) => {
    const { json } = await api.call('GET', '/v1/sites/deleted', { caller: victim });
    return (json as { data: { id: string; reason_code: string }[] }).data.find((record) => record.id === id)
      ?.reason_code;
  };
  const restore = (id: string) => api.call('POST', `/v1/sites/deleted/${id}/restore`, { caller: victim });
  const proveBy = async (caller: Caller, domain: string): Promise<void> => {
    const siteId = await made(caller, domain);
    await show(caller, siteId);
    expect((await prove(caller, siteId)).status).toBe(200);
  };

  it('returns, proven as it was, although somebody claims its domain', async () => {
    const { id, siteId, domain } = await deleted({});
    await made(attacker, domain);
    expect([await reasonOf(id), await listedReasonOf(id), (await restore(id)).status]).toEqual(['', '', 202]);
    expect(await read(victim, siteId)).toMatchObject({ status: 'proven' });
  });

  it('is refused while another organisation has proven its domain, or its own organisation uses it', async () => {
    const [taken, own] = [await deleted({}), await deleted({ isProven: false })];
    await proveBy(attacker, taken.domain);
    await made(victim, own.domain);
    for (const { id } of [taken, own]) {
      expect([await reasonOf(id), await listedReasonOf(id)]).toEqual(['domain_in_use', 'domain_in_use']);
      expect((await restore(id)).json).toMatchObject({ code: 'domain_in_use' });
    }
  });

  it('that had only claimed its domain returns with the claim, and learns of no proof by others', async () => {
    const { id, siteId, domain } = await deleted({ isProven: false });
    await proveBy(attacker, domain);
    expect([await reasonOf(id), (await restore(id)).status]).toEqual(['', 202]);
    expect(await read(victim, siteId)).toMatchObject({ status: 'unproven' });
  });
});
