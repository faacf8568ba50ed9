import http from 'node:http';
import net from 'node:net';
import { problemSchema } from '@drydock/contracts/platform/problems';
import { keyChallenge } from '@drydock/service/http';
import { until } from '@drydock/testing/wait';
import { type Bench, newKey, startBench, type TestKey } from '../test/fixture';
import { upstreamLimits } from './upstream';

let bench: Bench;
let key: TestKey;
beforeEach(async () => {
  bench = await startBench();
  key = bench.register();
});
afterEach(() => {
  jest.restoreAllMocks();
  return bench.close();
});

const workflowPath =
  '/v1/sites/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44/workflows/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a45/events';
const call = (path = '/v1/sites', init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {}) =>
  fetch(bench.url + path, { ...init, headers: { authorization: `Bearer ${key.token}`, ...init.headers } });
const post = () => call('/v1/sites', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });

describe('answers', () => {
  it('have the headers of the contract and no other', async () => {
    bench.hosting.answer = (_request, response) => {
      response.writeHead(202, {
        'content-type': 'application/json',
        location: '/v1/x',
        'x-workflow-id': '01a208be-f0eb-7d31-82a5-1e3a0fff2b2c',
        'retry-after': '1',
        'cache-control': 'no-store',
        etag: '"1"',
        'idempotent-replayed': 'true',
        'x-powered-by': 'secret',
        'set-cookie': 'a=b',
        server: 'inside',
        'x-request-id': 'of-the-service',
      });
      response.end('{}');
    };
    const response = await post();
    expect(response.status).toBe(202);
    const names = [...response.headers.keys()].filter(
      (name) => !/^(date|connection|keep-alive|transfer-encoding|content-length|ratelimit.*)$/.test(name),
    );
    expect(names).toEqual([
      'cache-control',
      'content-type',
      'etag',
      'idempotent-replayed',
      'location',
      'retry-after',
      'x-request-id',
      'x-workflow-id',
    ]);
    expect(response.headers.get('x-request-id')).not.toBe('of-the-service');
  });

  it('to HEAD are those to GET without the body, and HEAD of a stream is 405', async () => {
    bench.hosting.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '8', etag: '"1"' });
      response.end('{"a":12}');
    };
    const head = await call('/v1/sites', { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), head.headers.get('etag'), await head.text()]).toEqual([
      200,
      '8',
      '"1"',
      '',
    ]);
    expect(bench.hosting.seen.at(-1)?.method).toBe('GET');
    // After the answer to HEAD, the connection can be used for further requests.
    expect(await (await call()).json()).toEqual({ a: 12 });
    const refused = await fetch(`${bench.url}/v1/sites`, { method: 'HEAD' });
    expect([refused.status, await refused.text()]).toEqual([401, '']);
    const stream = await call(workflowPath, { method: 'HEAD' });
    expect([stream.status, stream.headers.get('allow')]).toEqual([405, 'GET, OPTIONS']);
  });

  it('may be 304 if the client has the answer, and a PATCH is never forwarded without its If-Match', async () => {
    bench.hosting.answer = (_request, response) =>
      void response.writeHead(304, { etag: '"1"', 'cache-control': 'no-store' }).end();
    const conditions = { 'if-match': '"1"', 'if-none-match': 'W/"1", "2"' };
    const same = await call('/v1/sites', { headers: conditions });
    expect([same.status, same.headers.get('etag'), await same.text()]).toEqual([304, '"1"', '']);
    expect((await call('/v1/sites', { method: 'HEAD', headers: conditions })).status).toBe(304);
    const passed = () => ['if-match', 'if-none-match'].map((name) => bench.hosting.seen.at(-1)?.headers[name]);
    expect(passed()).toEqual([undefined, 'W/"1", "2"']);
    bench.hosting.answer = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    const change = (headers: Record<string, string>) =>
      call('/v1/sites/0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44', {
        method: 'PATCH',
        body: '{}',
        headers: { 'content-type': 'application/json', ...headers },
      });
    expect((await change(conditions)).status).toBe(200);
    expect(passed()).toEqual(['"1"', undefined]);
    await post();
    expect(passed()).toEqual([undefined, undefined]);
    const { arrived } = bench.hosting;
    const refused = await change({ 'if-match': `"${'x'.repeat(1_000)}"` });
    expect([refused.status, bench.hosting.arrived]).toEqual([422, arrived]);
    await call('/v1/sites', { headers: { 'if-none-match': `"${'x'.repeat(1_000)}"` } });
    expect(passed()).toEqual([undefined, undefined]);
  });

  it('can be read by pages of any origin, whose preflight request needs no key', async () => {
    const origin = { origin: 'https://panel.example.com' };
    const asked = {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,idempotency-key',
    };
    const preflight = await fetch(`${bench.url}/v1/sites`, { method: 'OPTIONS', headers: asked });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      allow: 'GET, HEAD, OPTIONS, POST',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD, OPTIONS, POST',
      'access-control-allow-headers': expect.stringMatching(/Authorization.*Idempotency-Key/),
    });
    expect(bench.hosting.arrived).toBe(0);
    for (const response of [
      await call('/v1/sites', { headers: origin }),
      await call('/v1/nothing', { headers: origin }),
      await fetch(`${bench.url}/v1/sites`, { headers: origin }),
      await fetch(`${bench.url}/openapi.json`, { headers: origin }),
    ]) {
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([response.status, '*']);
      expect(response.headers.get('access-control-expose-headers')).toMatch(
        /ETag.*Location.*Retry-After.*X-Workflow-Id/,
      );
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
    }
    expect((await call()).headers.get('access-control-allow-origin')).toBeNull();
    expect((await fetch(`${bench.url}/v1/nothing`, { method: 'OPTIONS', headers: asked })).status).toBe(404);
  });

  it('with a problem pass as the service wrote them', async () => {
    bench.hosting.answer = (_request, response) => {
      response.writeHead(422, { 'content-type': 'application/problem+json' });
      response.end('{"code":"backup_not_found"}');
    };
    const response = await post();
    expect([response.status, await response.json()]).toEqual([422, { code: 'backup_not_found' }]);
  });

  it('of 256 MB come as fast as the client reads, without filling memory', async () => {
    // The body is far larger than the sockets' buffers, each of which the kernel may enlarge to 32 MB.
    const pieces = 4096;
    let sent = 0;
    bench.hosting.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const piece = Buffer.alloc(65_536, 'x');
      const push = (): void => {
        while (sent < pieces) {
          sent += 1;
          if (!response.write(piece)) return void response.once('drain', push);
        }
        response.end();
      };
      push();
    };
    const response = await new Promise<http.IncomingMessage>((resolve) => {
      http.get(`${bench.url}/v1/sites`, { headers: { authorization: `Bearer ${key.token}` } }, resolve);
    });
    response.pause();
    let before = -1;
    let stillFor = 0;
    await until(
      () => {
        stillFor = sent === before && sent > 0 ? stillFor + 1 : 0;
        before = sent;
        return stillFor > 10;
      },
      { everyMs: 30 },
    );
    expect(sent).toBeLessThan(pieces);
    let size = 0;
    for await (const chunk of response) size += chunk.length;
    expect(size).toBe(pieces * 65_536);
  });
});

describe('event streams', () => {
  it('pass unbuffered, resume by Last-Event-ID, and end with the client', async () => {
    let gone = false;
    let write: ((text: string) => void) | undefined;
    bench.hosting.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      write = (text) => response.write(text);
      response.once('close', () => {
        gone = true;
      });
    };
    const leaving = new AbortController();
    const response = await call(workflowPath, { headers: { 'last-event-id': '7' }, signal: leaving.signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(bench.hosting.seen.at(-1)?.headers).toMatchObject({ 'last-event-id': '7', accept: 'text/event-stream' });
    const reader = response.body?.getReader();
    write?.('data: 1\n\n');
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n');
    // A stream does not count as a call in progress.
    expect(bench.gateway.inFlight).toBe(0);
    leaving.abort();
    await until(() => gone);
  });
});

describe('places', () => {
  it('a request is refused at once if all are taken, and they are given back', async () => {
    await bench.close();
    bench = await startBench({ limits: { inFlightMax: 2 } });
    key = bench.register();
    const held: http.ServerResponse[] = [];
    bench.hosting.answer = (_request, response) => void held.push(response);
    const other = bench.register();
    const waiting = [call(), call('/v1/sites', { headers: { authorization: `Bearer ${other.token}` } })];
    await until(() => held.length === 2);
    const refused = await call();
    expect([
      refused.status,
      problemSchema.parse(await refused.json()).code,
      refused.headers.get('retry-after'),
    ]).toEqual([503, 'overloaded', '1']);
    expect((await fetch(`${bench.url}/healthz`)).status).toBe(200);
    for (const response of held) response.end('{}');
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    await until(() => bench.gateway.inFlight === 0);
  });
});

describe('clients that leave', () => {
  it.each([
    ['GET', true],
    ['POST', false],
  ])('cancel a %s: %s', async (method, cancels) => {
    let outcome: 'finished' | 'cancelled' | undefined;
    bench.hosting.answer = (_request, response) => {
      response.once('close', () => {
        outcome = response.writableFinished ? 'finished' : 'cancelled';
      });
      // A request that is not cancelled is answered after the client has disconnected.
      if (!cancels) setTimeout(() => response.end('{}'), 300);
    };
    const leaving = new AbortController();
    const body = method === 'POST' ? { body: '{}' } : {};
    const asking = call('/v1/sites', {
      method,
      signal: leaving.signal,
      headers: { 'content-type': 'application/json' },
      ...body,
    }).catch(() => 'left');
    await until(() => bench.hosting.arrived === 1);
    leaving.abort();
    expect(await asking).toBe('left');
    await until(() => outcome !== undefined);
    expect(outcome).toBe(cancels ? 'cancelled' : 'finished');
    await until(() => bench.gateway.inFlight === 0);
  });
});

describe('connections that die before the first byte', () => {
  it('a GET is sent once more, a POST without Idempotency-Key is not', async () => {
    let deaths = 1;
    bench.hosting.answer = (request, response) => {
      if (deaths > 0) {
        deaths -= 1;
        request.socket.destroy();
      } else response.end('{}');
    };
    expect((await call()).status).toBe(200);
    expect(bench.hosting.arrived).toBe(2);
    deaths = 1;
    const lost = await post();
    expect(lost.status).toBe(503);
    expect(problemSchema.parse(await lost.json()).detail).toMatch(/may or may not/);
    expect(bench.hosting.arrived).toBe(3);
  });

  it('the problem of a lost write advises a repeat with the same Idempotency-Key, or else to read first', async () => {
    bench.hosting.answer = (request) => void request.socket.destroy();
    const detailOf = async (headers: Record<string, string>): Promise<string | undefined> => {
      const json = { 'content-type': 'application/json' };
      const lost = await call('/v1/sites', { method: 'POST', body: '{}', headers: { ...json, ...headers } });
      return problemSchema.parse(await lost.json()).detail;
    };
    expect(await detailOf({ 'idempotency-key': 'the-key-of-this-call' })).toMatch(/with the same Idempotency-Key\.$/);
    expect(await detailOf({})).toMatch(/Read the resource before you send it again/);
  });

  it('an answer that breaks off breaks off for the client too', async () => {
    bench.hosting.answer = (request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setTimeout(() => request.socket.destroy(), 50);
    };
    const response = await call();
    await expect(response.text()).rejects.toThrow('terminated');
  });
});

describe('refusals by a service', () => {
  it('a refusal of the gateway’s own token is a 503, never a 401', async () => {
    bench.hosting.answer = (_request, response) => {
      response.writeHead(401).end();
    };
    const response = await call();
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'dependency_unavailable', dependency: 'hosting' });
    expect(response.headers.get('retry-after')).toBe('5');
  });

  it('a refusal of a key that was revoked meanwhile is a 401', async () => {
    bench.hosting.answer = (_request, response) => {
      response
        .writeHead(401, { 'content-type': 'application/problem+json', 'www-authenticate': keyChallenge })
        .end('{"code":"unauthenticated"}');
    };
    const [refused, unknown] = await Promise.all([
      call('/v1/sites', { headers: { 'x-request-id': 'same-for-both' } }),
      fetch(`${bench.url}/v1/sites`, {
        headers: { authorization: `Bearer ${newKey().token}`, 'x-request-id': 'same-for-both' },
      }),
    ]);
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(await refused.text()).toBe(await unknown.text());
  });

  it('a service that is not configured is a 503', async () => {
    await bench.close();
    bench = await startBench();
    const { keys } = bench;
    const other = await startBench({
      config: {
        upstreams: { keys: { urls: [keys.url], tokenSecret: Buffer.from('keys'.padEnd(32, '.')).toString('hex') } },
      },
    });
    key = bench.register();
    const response = await fetch(`${other.url}/v1/sites`, { headers: { authorization: `Bearer ${key.token}` } });
    expect([response.status, problemSchema.parse(await response.json())['dependency']]).toEqual([503, 'hosting']);
    await other.close();
  });
});

describe('the circuit breaker', () => {
  it('opens after five failures, answers at once while open, and lets one read try', async () => {
    await bench.close();
    const openMs = 60_000;
    bench = await startBench({ limits: { upstream: { ...upstreamLimits, openMs } } });
    key = bench.register();
    const { port } = bench.hosting;
    let arrived = 0;
    let behaviour: 'die' | 'hold' = 'die';
    const held: net.Socket[] = [];
    await bench.hosting.close();
    const broken = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        arrived += 1;
        if (behaviour === 'die') socket.destroy();
        else held.push(socket);
      });
    });
    await new Promise<void>((resolve) => broken.listen(port, '127.0.0.1', resolve));
    for (let failure = 0; failure < 5; failure += 1) expect((await post()).status).toBe(503);
    expect(arrived).toBe(5);
    expect((await post()).status).toBe(503);
    expect(arrived).toBe(5);
    behaviour = 'hold';
    const now = Date.now.bind(Date);
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + openMs);
    const probe = call();
    await until(() => held.length === 1);
    const others = await Promise.all(Array.from({ length: 20 }, post));
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([503]));
    expect(arrived).toBe(6);
    held[0]?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}');
    expect((await probe).status).toBe(200);
    const after = post();
    await until(() => arrived === 7);
    for (const socket of held) socket.destroy();
    await after;
    clock.mockRestore();
    await new Promise((resolve) => broken.close(resolve));
  });

  it('refuses no call while the first write after an outage takes long', async () => {
    bench.hosting.answer = (request) => void request.socket.destroy();
    for (let failure = 0; failure < 5; failure += 1) expect((await post()).status).toBe(503);
    const held: http.ServerResponse[] = [];
    bench.hosting.answer = (request, response) =>
      void (request.method === 'POST' ? held.push(response) : response.end('{}'));
    let writing = post();
    await until(async () => {
      const isHeld = until(() => held.length > 0);
      if (await Promise.race([isHeld, writing.then(() => false)])) return true;
      writing = post();
      return false;
    });
    expect((await call()).status).toBe(200);
    expect(held).toHaveLength(1);
    held[0]?.end('{}');
    expect((await writing).status).toBe(200);
  });

  it('without the keys service a token that must be looked up is a 503 that names keys', async () => {
    await bench.keys.close();
    const response = await call();
    expect([response.status, problemSchema.parse(await response.json())['dependency']]).toEqual([503, 'keys']);
    expect((await fetch(`${bench.url}/readyz`)).status).toBe(503);
  });
});

describe('authentication', () => {
  it('a revoked key works for less than a second after its last look-up', async () => {
    expect((await call()).status).toBe(200);
    bench.revoke(key);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const after = await Promise.all(Array.from({ length: 30 }, () => call()));
    expect(new Set(after.map(({ status }) => status))).toEqual(new Set([401]));
    // One look-up serves all calls of a second. On a busy machine the calls take several seconds.
    expect(bench.keys.lookUps.length).toBeLessThan(10);
  });

  it('an address that guesses keys is throttled, but keys that were valid before still work from it', async () => {
    await bench.close();
    bench = await startBench({ limits: { failedLookUpsMax: 5 } });
    key = bench.register();
    await call();
    for (let index = 0; index < 10; index += 1) {
      const { token } = newKey();
      expect((await fetch(`${bench.url}/v1/sites`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(
        401,
      );
    }
    expect(bench.keys.lookUps).toHaveLength(6);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await call()).status).toBe(200);
  });
});
