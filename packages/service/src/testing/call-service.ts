import type { AddressInfo } from 'node:net';
import { getGlobalDispatcher } from 'undici';
import { uuidv7 } from 'uuidv7';
import { type Caller, signRequestToken, tokenKey } from '../access/internal-token';
import type { Service } from '../http/service';
import { assertContract, endpointAt } from './assert-contract';

export interface ServiceCall {
  method: string;
  /** The path with its query. */
  path: string;
  /** The body. A value is sent as JSON, and bytes are sent unchanged. */
  body?: unknown;
  caller: Caller;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

export interface ServiceAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  text: string;
  /** The parsed JSON; undefined if there is no body. */
  json: unknown;
}

/**
 * Calls a service over its socket as the gateway does, with a token for this request. Throws if the contract does not
 * promise the answer, so that no test has to check that.
 */
export async function callService(
  target: { service: Service; name: string; tokenSecret: string },
  { method, path, body, caller, idempotencyKey, headers }: ServiceCall,
): Promise<ServiceAnswer> {
  const bytes = body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const ifMatch = method === 'PATCH' ? headers?.['if-match'] : undefined;
  const bound = { requestId: uuidv7(), method, path, body: bytes, idempotencyKey, ifMatch };
  const token = signRequestToken(tokenKey(target.tokenSecret), target.name, caller, bound);
  const { port } = target.service.server.address() as AddressInfo;
  // `request(url)` is not used, because a URL would normalise the path, but the signed path must be sent unchanged.
  const response = await getGlobalDispatcher().request({
    origin: `http://127.0.0.1:${port}`,
    path,
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(bytes === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...headers,
    },
    ...(bytes === undefined ? {} : { body: bytes }),
  });
  const text = await response.body.text();
  const isJson = String(response.headers['content-type'] ?? '').includes('json');
  const json: unknown = isJson && text !== '' ? JSON.parse(text) : undefined;
  const endpoint = endpointAt(method, path);
  const header = (name: string): string | undefined => response.headers[name]?.toString();
  if (endpoint !== undefined)
    assertContract(endpoint, { status: response.statusCode, header, body: isJson ? json : text });
  return { status: response.statusCode, headers: response.headers, text, json };
}
