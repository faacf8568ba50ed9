import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { ResolveAll } from '@drydock/service/outbound';
import { OffsiteError, type OffsitePlace } from './offsite-storage';
import { s3OffsiteStorage } from './offsite-storage.s3';

const credentials = { accessKeyId: 'KEY', secretAccessKey: 'secret' };
const key = '01900000-0000-7000-8000-000000000001/01900000-0000-7000-8000-000000000002/1';
/** No call reaches these limits, because every refusal comes at once. */
const deadlines = { connectMs: 60_000, idleMs: 60_000, objectMs: 60_000 };
const hasty = { connectMs: 1_000, idleMs: 1_000, objectMs: 4_000 };

/** A DNS that gives the n-th answer to the n-th query, and the last one to all later queries. */
function fakeDns(...answers: readonly (readonly string[])[]): { resolve: ResolveAll; questions: string[] } {
  const questions: string[] = [];
  const resolve: ResolveAll = (hostname, answer) => {
    const addresses = answers[Math.min(questions.length, answers.length - 1)] ?? [];
    questions.push(hostname);
    answer(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { resolve, questions };
}

describe('no address of our network is reached through a customer’s endpoint', () => {
  /** A server inside our network, which counts connections. */
  let canary: Server;
  let port: number;
  let hits = 0;
  beforeAll(async () => {
    canary = createServer((socket) => {
      hits += 1;
      socket.destroy();
    });
    canary.listen(0, '::');
    await once(canary, 'listening');
    port = (canary.address() as AddressInfo).port;
  });
  beforeEach(() => {
    hits = 0;
  });
  afterAll(() => new Promise((done) => canary.close(done)));

  const placeAt = (endpoint: string): OffsitePlace => ({
    endpoint: new URL(endpoint).origin,
    region: 'us-east-1',
    bucket: 'b-b',
    prefix: '',
  });
  const read = async (endpoint: string, resolve?: ResolveAll, allowed: readonly string[] = []): Promise<unknown> => {
    const open = s3OffsiteStorage({ allowed: new Set(allowed), ...(resolve === undefined ? {} : { resolve }) });
    const storage = open(placeAt(endpoint), credentials, { deadlines });
    return storage
      .source(key)
      .read('manifest')
      .catch((error: unknown) => error)
      .finally(() => storage.close());
  };

  it('is reached when the installation allows it, so that the canary below means something', async () => {
    await read(`http://127.0.0.1:${port}`, undefined, [`127.0.0.1:${port}`]);
    expect(hits).toBeGreaterThan(0);
  });

  it.each(['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0177.0.0.1', '0x7f000001', '127.1', '0.0.0.0'])(
    'not as %s',
    async (host) => {
      expect(await read(`http://${host}:${port}`)).toMatchObject({ refusal: 'endpoint_refused' });
      expect(hits).toBe(0);
    },
  );

  it.each([
    ['loopback', ['127.0.0.1']],
    ['loopback by IPv6', ['::1']],
    ['a mapped address', ['::ffff:127.0.0.1']],
    ['the metadata service', ['169.254.169.254']],
    ['a private network', ['10.0.0.1']],
    ['a public address and, beside it, ours', ['1.1.1.1', '127.0.0.1']],
    ['nothing at all', []],
  ])('not by a name that leads to %s', async (_where, addresses) => {
    const dns = fakeDns(addresses);
    expect(await read(`http://storage.example.com:${port}`, dns.resolve)).toBeInstanceOf(OffsiteError);
    expect([hits, dns.questions[0]]).toEqual([0, 'storage.example.com']);
  });

  it('not by a name of the system’s own, such as localhost', async () => {
    expect(await read(`http://localhost:${port}`)).toMatchObject({ refusal: 'endpoint_refused' });
    expect(hits).toBe(0);
  });

  it('not by a name that leads to a public address first and to ours afterwards', async () => {
    // This public address does not answer, so the call fails after a second.
    const dns = fakeDns(['203.0.114.1'], ['127.0.0.1']);
    const open = s3OffsiteStorage({ allowed: new Set(), resolve: dns.resolve });
    const storage = open(placeAt(`http://rebinding.example.com:${port}`), credentials, { deadlines: hasty });
    for (let round = 0; round < 2; round += 1)
      await storage
        .source(key)
        .read('manifest')
        .catch(() => undefined);
    storage.close();
    expect([hits, dns.questions.length]).toEqual([0, 1]);
  });

  it.each([301, 302, 303, 307, 308])('not by a redirect with %d', async (status) => {
    const redirecting = http.createServer((_request, response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${port}/` }).end();
    });
    redirecting.listen(0, '127.0.0.1');
    await once(redirecting, 'listening');
    const at = `127.0.0.1:${(redirecting.address() as AddressInfo).port}`;
    const error = await read(`http://${at}`, undefined, [at]);
    redirecting.closeAllConnections();
    await new Promise((done) => redirecting.close(done));
    expect(error).toMatchObject({ refusal: 'bucket_unusable' });
    expect(hits).toBe(0);
  });
});
