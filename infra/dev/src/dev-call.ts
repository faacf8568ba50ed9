// `npm run dev:call METHOD PATH [BODY]`: sends a request to a service that runs without a gateway. The request has the
// token that the gateway would sign.

import { randomUUID } from 'node:crypto';
import { endpoints } from '@drydock/contracts/endpoints';
import { permissions } from '@drydock/contracts/platform/permissions';
import { readCommandLine } from '@drydock/process';
import { signRequestToken, tokenKey } from '@drydock/service/access';
import { request } from 'undici';
import { type DevEnvironment, readDevEnvironment } from './dev-environment';
import { servicesWithDatabase } from './place';

const usage = `npm run dev:call METHOD PATH [BODY]
  SERVICE=hosting names the service where the path alone does not; ORG_ID, KEY_ID and MODE=sandbox change who calls`;

/**
 * The organisation that calls if ORG_ID is not set. The id is fixed, so that a call finds the objects of an earlier
 * call.
 */
const devOrgId = '01890000-0000-7000-8000-000000000001';
const devKeyId = '01890000-0000-7000-8000-000000000002';

/**
 * Returns the service whose contract has this path. Returns undefined for a path such as /healthz, which is in no
 * contract.
 */
function findService(method: string, path: string): string | undefined {
  const segments = (path.split('?')[0] ?? '').split('/');
  const found = endpoints.find((endpoint) => {
    const template = endpoint.path.split('/');
    const fits = template.every((part, index) => part.startsWith('{') || part === segments[index]);
    return endpoint.method === method && template.length === segments.length && fits;
  });
  return found?.service;
}

function findRunning(wanted: string | undefined): { service: string; running: DevEnvironment } {
  for (const service of wanted === undefined ? servicesWithDatabase : [wanted]) {
    const running = readDevEnvironment(service);
    if (running !== null) return { service, running };
  }
  throw new Error(`${wanted ?? 'No service'} runs alone; start one: npm run dev ${wanted ?? 'hosting'}`);
}

async function call(method: string, path: string, body: string | undefined): Promise<void> {
  const { service, running } = findRunning(process.env['SERVICE'] ?? findService(method, path));
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const idempotencyKey = method === 'POST' ? randomUUID() : undefined;
  const caller = {
    keyId: process.env['KEY_ID'] ?? devKeyId,
    orgId: process.env['ORG_ID'] ?? devOrgId,
    mode: process.env['MODE'] === 'sandbox' ? ('sandbox' as const) : ('live' as const),
    scopes: permissions,
  };
  const key = tokenKey(running.environment['INTERNAL_TOKEN_SECRET'] ?? '');
  const token = signRequestToken(key, service, caller, {
    requestId: randomUUID(),
    method,
    path,
    body: bytes,
    idempotencyKey,
  });
  const response = await request(`http://127.0.0.1:${running.port}${path}`, {
    method: method as 'GET',
    headers: {
      authorization: `Bearer ${token}`,
      ...(bytes === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    ...(bytes === undefined ? {} : { body: bytes }),
  }).catch((error: Error) => {
    throw new Error(describeSilence(service, error));
  });
  process.stderr.write(`${response.statusCode} from ${service}\n`);
  process.stdout.write(`${prettyText(await response.body.text())}\n`);
  if (response.statusCode >= 400) process.exitCode = 1;
}

/** Returns why the service does not answer: the reason that `npm run dev` has recorded, or the error. */
function describeSilence(service: string, error: Error): string {
  const reason = readDevEnvironment(service)?.down ?? `${error.message}; it may still be starting`;
  return `${service} does not answer: ${reason}`;
}

function prettyText(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const [method, path, body] = readCommandLine(usage, { options: {}, wordsMax: 3 }).positionals;
if (method === undefined || path === undefined || !path.startsWith('/')) {
  process.stderr.write(`usage: ${usage}\n`);
  process.exitCode = 2;
} else {
  void call(method.toUpperCase(), path, body).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
