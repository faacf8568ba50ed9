import { randomInt } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { base62Alphabet, formatToken } from '@drydock/contracts/platform/api-token';
import { permissions } from '@drydock/contracts/platform/permissions';
import type { Mode } from '@drydock/contracts/platform/values';
import {
  assertBound,
  type RequestClaims,
  rememberTokens,
  tokenKeys,
  verifyInternalToken,
  verifyRequestToken,
} from '@drydock/service/access';
import { createLog } from '@drydock/service/telemetry';
import { uuidv7 } from 'uuidv7';
import { composeGateway, type Gateway, type GatewayLimits } from '../src/compose';
import type { GatewayConfig } from '../src/config';
import { upstreamLimits } from '../src/upstream';

export const secretOf = (name: string): string => Buffer.from(name.padEnd(32, '.')).toString('hex');

export interface TestKey {
  token: string;
  keyId: string;
  orgId: string;
  mode: Mode;
  scopes: readonly string[];
  allowedIps?: readonly string[];
}

const randomBase62 = (length: number): string => Array.from({ length }, () => base62Alphabet[randomInt(62)]).join('');
export const randomToken = (mode: Mode = 'live'): string =>
  formatToken({ mode, prefix: randomBase62(12), secret: randomBase62(43) });

export const newKey = (given: Partial<TestKey> = {}): TestKey => {
  const mode = given.mode ?? 'live';
  return { token: randomToken(mode), keyId: uuidv7(), orgId: uuidv7(), mode, scopes: permissions, ...given };
};

/** A call whose token the test service has verified. */
export interface SeenRequest {
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  claims: RequestClaims;
  body: string;
}

export type Answering = (request: http.IncomingMessage, response: http.ServerResponse, seen: SeenRequest) => void;

export interface TestService {
  url: string;
  port: number;
  seen: SeenRequest[];
  /** The tokens that the gateway has asked the keys service about. */
  lookUps: string[];
  /** The number of requests that have arrived, verified or not. Probes are not among them. */
  arrived: number;
  /** The number of requests for /readyz. `answersProbes` says whether they are answered. */
  probes: number;
  answersProbes: boolean;
  answer: Answering;
  verificationMs: number;
  close(): Promise<void>;
}

const answerOk: Answering = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{"ok":true}');
};

const bodyOf = async (request: http.IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
};

/**
 * Starts a small real service. It refuses every call with a wrong token, and answers for the given keys as the keys
 * service does.
 */
export async function startService(name: string, keys: Map<string, TestKey> = new Map()): Promise<TestService> {
  const signedWith = tokenKeys(secretOf(name));
  const used = rememberTokens();
  const service: TestService = {
    url: '',
    port: 0,
    seen: [],
    lookUps: [],
    arrived: 0,
    probes: 0,
    answersProbes: true,
    answer: answerOk,
    verificationMs: 0,
    close: async () => undefined,
  };
  const verify = async (request: http.IncomingMessage, response: http.ServerResponse, token: string): Promise<void> => {
    const body = await bodyOf(request);
    const expected = {
      keys: signedWith,
      used,
      issuer: 'gateway',
      audience: name,
      method: 'POST',
      path: '/internal/verify',
    };
    assertBound(verifyInternalToken(token, expected), { body });
    const { token: asked } = JSON.parse(body.toString());
    service.lookUps.push(asked);
    const found = keys.get(asked);
    await new Promise((resolve) => setTimeout(resolve, service.verificationMs));
    const { keyId, orgId, mode, scopes, allowedIps } = found ?? newKey();
    const good = {
      valid: true,
      key_id: keyId,
      org_id: orgId,
      mode,
      scopes,
      ...(allowedIps === undefined ? {} : { allowed_ips: allowedIps }),
    };
    response.end(JSON.stringify(found === undefined ? { valid: false } : good));
  };
  const serve = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const { method = '', url = '', headers } = request;
    service.arrived += 1;
    const token = String(headers.authorization).replace(/^Bearer /, '');
    if (url === '/internal/verify') return verify(request, response, token);
    const claims = verifyRequestToken(token, {
      keys: signedWith,
      used,
      issuer: 'gateway',
      audience: name,
      method,
      path: url,
    });
    const body = await bodyOf(request);
    const idempotencyKey = headers['idempotency-key'];
    assertBound(claims, {
      body,
      idempotencyKey: typeof idempotencyKey === 'string' ? idempotencyKey : undefined,
      ifMatch: headers['if-match'],
    });
    const seen = { method, url, headers, claims, body: body.toString() };
    service.seen.push(seen);
    service.answer(request, response, seen);
  };
  const server = http.createServer((request, response) => {
    if (request.url === '/readyz') {
      service.probes += 1;
      if (service.answersProbes) response.end('{}');
    } else {
      serve(request, response).catch((error: unknown) => {
        response.writeHead(401, { 'content-type': 'application/problem+json' });
        response.end(JSON.stringify({ code: 'unauthenticated', why: String(error) }));
      });
    }
  });
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  service.port = (server.address() as AddressInfo).port;
  service.url = `http://127.0.0.1:${service.port}`;
  service.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return service;
}

export interface Bench {
  gateway: Gateway;
  url: string;
  port: number;
  keys: TestService;
  hosting: TestService;
  services: Readonly<Record<string, TestService>>;
  register(given?: Partial<TestKey>): TestKey;
  revoke(key: TestKey): void;
  close(): Promise<void>;
}

export interface BenchOptions {
  config?: Partial<GatewayConfig>;
  limits?: Partial<GatewayLimits>;
  /** Further URLs of the hosting service, after its own. */
  hostingUrls?: readonly string[];
  /** Services in addition to keys and hosting. */
  more?: readonly Exclude<keyof GatewayConfig['upstreams'], 'keys' | 'hosting'>[];
}

/** Starts a gateway in front of test services for keys, for hosting and for those in `more`, all on real sockets. */
export async function startBench(given: BenchOptions = {}): Promise<Bench> {
  const known = new Map<string, TestKey>();
  const keys = await startService('keys', known);
  const hosting = await startService('hosting');
  const services: Record<string, TestService> = { keys, hosting };
  for (const name of given.more ?? []) services[name] = await startService(name);
  const upstreamOf = (name: string) => ({ urls: [services[name]?.url ?? ''], tokenSecret: secretOf(name) });
  const config: GatewayConfig = {
    host: '127.0.0.1',
    port: 0,
    drainMs: 20,
    logLevel: 'silent',
    serviceName: 'gateway',
    upstreams: {
      keys: upstreamOf('keys'),
      hosting: { urls: [hosting.url, ...(given.hostingUrls ?? [])], tokenSecret: secretOf('hosting') },
      ...Object.fromEntries((given.more ?? []).map((name) => [name, upstreamOf(name)])),
    },
    redisUrl: undefined,
    rateLimitScale: 1_000,
    trustedProxies: [],
    ...given.config,
  };
  const limits = { upstream: { ...upstreamLimits, openMs: 300 }, ...given.limits };
  const gateway = composeGateway({ config, log: createLog({ service: 'gateway', level: config.logLevel }), limits });
  const { url, port } = await gateway.listen(0);
  return {
    gateway,
    url,
    port,
    keys,
    hosting,
    services,
    register: (key) => {
      const made = newKey(key);
      known.set(made.token, made);
      return made;
    },
    revoke: (key) => known.delete(key.token),
    close: async () => {
      await gateway.close();
      await Promise.all(Object.values(services).map((service) => service.close()));
    },
  };
}
