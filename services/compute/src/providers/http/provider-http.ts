import { timeLimit } from '@drydock/process';
import { Agent, request } from 'undici';

export interface HttpOptions {
  /** The URL with its path, such as `https://api.hetzner.cloud/v1`. */
  baseUrl: string;
  /** Headers of every request, including the credential. */
  headers: Readonly<Record<string, string>>;
  /** The time limit of a call, from the connection to the last byte of the answer. */
  deadlineMs: number;
  /** The largest body of an answer, in bytes. A longer answer counts as no answer (`NoAnswer`). */
  bodyBytesMax: number;
  /**
   * The certificate authority of a provider on the operator's own premises, in PEM. It replaces the public authorities.
   */
  ca?: string | undefined;
}

export interface HttpCall {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Segments of the path. They are encoded here, so that an id cannot lead to another path. */
  path: readonly (string | number)[];
  query?: ReadonlyArray<readonly [string, string]>;
  body?: { kind: 'json'; value: unknown } | { kind: 'form'; fields: Readonly<Record<string, string>> } | undefined;
}

export interface HttpAnswer {
  status: number;
  /** The text of the status line. Some providers report the error nowhere else. */
  statusText: string;
  headers: Readonly<Record<string, string>>;
  /** Undefined if the body is empty or not JSON. */
  json: unknown;
  text: string;
}

/** Thrown when no complete answer came. `wasSent` is false only if the request certainly was not sent. */
export class NoAnswer extends Error {
  readonly wasSent: boolean;

  constructor(wasSent: boolean, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'NoAnswer';
    this.wasSent = wasSent;
  }
}

export interface ProviderHttp {
  /** Sends one request once, and follows no redirect. @throws NoAnswer */
  ask(call: HttpCall, signal?: AbortSignal): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** A provider that does not accept a connection within this time counts as unreachable. */
const connectMs = 3_000;
/**
 * The largest number of connections: as many as the workflows and requests of one process need at once. More
 * connections would only wait at the provider.
 */
const connectionsMax = 16;

export function openProviderHttp(options: HttpOptions): ProviderHttp {
  const agent = new Agent({
    connections: connectionsMax,
    pipelining: 1,
    connect: { timeout: connectMs, ...(options.ca === undefined ? {} : { ca: options.ca }) },
  });
  return {
    ask: async (call, signal) => {
      const deadline = timeLimit(options.deadlineMs);
      const ends = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
      try {
        const answer = await request(urlOf(options.baseUrl, call), {
          dispatcher: agent,
          method: call.method,
          headers: { accept: 'application/json', ...options.headers, ...contentType(call) },
          body: bodyOf(call),
          signal: ends,
        });
        const text = await readText(answer.body, options.bodyBytesMax, ends);
        return {
          status: answer.statusCode,
          statusText: answer.statusText,
          headers: flat(answer.headers),
          json: parseJson(text),
          text,
        };
      } catch (error) {
        throw new NoAnswer(!wasNeverSent(error), error);
      }
    },
    close: () => agent.destroy(),
  };
}

function urlOf(baseUrl: string, { path, query }: HttpCall): URL {
  const url = new URL(`${baseUrl.replace(/\/+$/, '')}/${path.map((segment) => encodeURIComponent(segment)).join('/')}`);
  for (const [name, value] of query ?? []) url.searchParams.append(name, value);
  return url;
}

const contentTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' };
const contentType = ({ body }: HttpCall): Record<string, string> =>
  body === undefined ? {} : { 'content-type': contentTypes[body.kind] };

function bodyOf({ body }: HttpCall): string | null {
  if (body === undefined) return null;
  return body.kind === 'json' ? JSON.stringify(body.value) : new URLSearchParams(body.fields).toString();
}

async function readText(
  body: AsyncIterable<Uint8Array> & { destroy(): unknown },
  bytesMax: number,
  ends: AbortSignal,
): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    ends.throwIfAborted();
    length += piece.length;
    if (length > bytesMax) {
      body.destroy();
      throw new Error(`the answer is longer than ${bytesMax} bytes`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const flat = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? (value[0] ?? '') : (value ?? '')]),
  );

/** Error codes of a connection that was never made. After any other error the provider may have read the request. */
const unsentCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

function wasNeverSent(error: unknown): boolean {
  const isCoded = error instanceof Error && 'code' in error && typeof error.code === 'string';
  return isCoded && unsentCodes.has(String(error.code));
}
