import { createServer, type Server } from 'node:http';
import { closeServer, listen } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { type NameServer, startNameServer } from '../../test/name-server';
import { createDomainProofs, type DomainProofOptions } from './domain-proof';

let names: NameServer;
let web: Server;
let port: number;
let page: { status: number; body: string; headers?: Record<string, string> };
const asked: string[] = [];
beforeAll(async () => {
  names = await startNameServer();
  web = createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    response.writeHead(page.status, page.headers).end(page.body);
  });
  port = Number(new URL((await listen(web, 0)).url).port);
});
beforeEach(() => {
  asked.length = 0;
  page = { status: 404, body: '' };
});
afterAll(async () => {
  await closeServer(web);
  await names.close();
});

/**
 * Makes proofs that are looked up at the name server of this file. No private address is allowed unless `change` allows
 * it.
 */
const proofsOf = (change: Partial<DomainProofOptions> = {}) =>
  createDomainProofs({ keys: [Buffer.alloc(32, 1)], isRequired: true, nameServers: [names.address], ...change });
const [orgId, domain] = [uuidv7(), 'shop.example.test'];

it('a TXT record of the organisation’s own value proves its domain, and no other organisation’s, no other domain and no part of it', async () => {
  const proofs = proofsOf();
  const { dns } = proofs.proofOf({ orgId, domain });
  expect(await proofs.isShown({ orgId, domain })).toBe(false);
  names.records.set(dns.name, ['v=spf1 -all', dns.value]);
  expect(await proofs.isShown({ orgId, domain })).toBe(true);
  expect(await proofs.isShown({ orgId: uuidv7(), domain })).toBe(false);
  names.records.set(`_drydock.other.example.test`, [dns.value]);
  expect(await proofs.isShown({ orgId, domain: 'other.example.test' })).toBe(false);
  names.records.set(dns.name, [`${dns.value}x`]);
  expect(await proofs.isShown({ orgId, domain })).toBe(false);
});

it('the values of two installations differ, and a value tells neither the organisation nor the key', () => {
  const [one, other] = [proofsOf(), proofsOf({ keys: [Buffer.alloc(32, 2)] })].map(
    (proofs) => proofs.proofOf({ orgId, domain }).dns.value,
  );
  expect(one).not.toBe(other);
  expect(one).not.toContain(orgId);
});

it('a record that was put up before a rotation of the secret proves its domain, and what is asked for is the new one', async () => {
  const [before, after] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const [claim, rotated] = [{ orgId, domain: 'rotated.example.test' }, proofsOf({ keys: [after, before] })];
  const { dns } = proofsOf().proofOf(claim);
  names.records.set(dns.name, [dns.value]);
  expect([await rotated.isShown(claim), await proofsOf({ keys: [after] }).isShown(claim)]).toEqual([true, false]);
  expect(rotated.proofOf(claim)).toEqual(proofsOf({ keys: [after] }).proofOf(claim));
});

describe('a file', () => {
  const literal = () => `127.0.0.1:${port}`;
  const shown = async (change: Partial<DomainProofOptions>) => {
    const proofs = proofsOf(change);
    const claim = { orgId, domain: literal() };
    if (page.status === 200 && page.body === '') page.body = proofs.proofOf(claim).http.content;
    return proofs.isShown(claim);
  };

  it('proves the domain where it is served as it was given, a line end behind it or none', async () => {
    page = { status: 200, body: '' };
    expect(await shown({ allowed: new Set([literal()]) })).toBe(true);
    page.body += '\n';
    expect(await shown({ allowed: new Set([literal()]) })).toBe(true);
    expect(asked).toContain(`${literal()}/.well-known/drydock-verification.txt`);
  });

  it('is never asked for inside our own network', async () => {
    page = { status: 200, body: '' };
    expect(await shown({})).toBe(false);
    const proofs = proofsOf({ resolve: (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]) });
    expect(await proofs.isShown({ orgId, domain: `inside.example.test:${port}` })).toBe(false);
    expect(asked).toEqual([]);
  });

  it.each([
    [
      'a redirect, wherever it leads',
      () => ({ status: 302, body: '', headers: { location: `http://127.0.0.1:${port}/elsewhere` } }),
    ],
    ['another status', () => ({ status: 203, body: proofsOf().proofOf({ orgId, domain: literal() }).http.content })],
    [
      'a page that has the value somewhere',
      () => ({ status: 200, body: `<p>${proofsOf().proofOf({ orgId, domain: literal() }).http.content}</p>` }),
    ],
    [
      'an answer that changes the protocol',
      () => ({ status: 101, body: '', headers: { connection: 'Upgrade', upgrade: 'other' } }),
    ],
    [
      'an endless page',
      () => ({
        status: 200,
        body: `${proofsOf().proofOf({ orgId, domain: literal() }).http.content}${' '.repeat(100_000)}`,
      }),
    ],
  ])('%s proves nothing', async (_what, answer) => {
    page = answer();
    expect(await shown({ allowed: new Set([literal()]) })).toBe(false);
    expect(asked.filter((path) => path.endsWith('/elsewhere'))).toEqual([]);
  });
});
