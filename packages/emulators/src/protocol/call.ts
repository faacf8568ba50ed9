import type { ServerResponse } from 'node:http';

/** A request whose body was read. */
export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  /** Headers by their lower-case names. */
  headers: Readonly<Record<string, string | undefined>>;
  body: Buffer;
}

export interface Reply {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

export const jsonReply = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});

export const emptyReply = (status: number): Reply => ({ status, headers: {}, body: '' });

export function sendReply(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, {
    ...headers,
    ...(status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  });
  response.end(status === 204 ? undefined : body);
}

/** An error that becomes the answer to the call. */
export class Refusal extends Error {
  readonly reply: Reply;

  constructor(reply: Reply) {
    super(`refused with ${reply.status}`);
    this.name = 'Refusal';
    this.reply = reply;
  }
}

/** Values of a route's pattern, decoded. `:name` matches one segment, and `*name` the rest of the path. */
export type PathValues = Readonly<Record<string, string>>;
export type Handler = (call: Call, values: PathValues) => Reply | Promise<Reply>;

export interface Route {
  method: string;
  pattern: string;
  handle: Handler;
}

export const routeAt = (method: string, pattern: string, handle: Handler): Route => ({ method, pattern, handle });

export type Match =
  | { kind: 'found'; handle: () => Reply | Promise<Reply> }
  | { kind: 'wrong_method' }
  | { kind: 'unknown' };

export function matchRoute(routes: readonly Route[], call: Call): Match {
  let isKnownPath = false;
  for (const { method, pattern, handle } of routes) {
    const values = valuesOf(pattern, call.path);
    if (values === null) continue;
    isKnownPath = true;
    if (method === call.method) return { kind: 'found', handle: () => handle(call, values) };
  }
  return { kind: isKnownPath ? 'wrong_method' : 'unknown' };
}

function valuesOf(pattern: string, path: string): PathValues | null {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  const values: Record<string, string> = {};
  for (const [index, segment] of wanted.entries()) {
    if (segment.startsWith('*')) {
      values[segment.slice(1)] = decode(given.slice(index).join('/'));
      return given.length > index ? values : null;
    }
    const text = given[index];
    if (text === undefined) return null;
    if (segment.startsWith(':')) values[segment.slice(1)] = decode(text);
    else if (segment !== text) return null;
  }
  return wanted.length === given.length ? values : null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns a value of the route's pattern. @throws Error when the pattern does not have the name, which is a bug */
export function pathValue(values: PathValues, name: string): string {
  const value = values[name];
  if (value === undefined) throw new Error(`the route has no ${name}`);
  return value;
}

/** A received call, for tests that count calls and compare times. The entry has no credentials and no body. */
export interface LoggedCall {
  /** Milliseconds since 1970 in real time. */
  at: number;
  method: string;
  path: string;
  /**
   * The status of the answer, even if only a part of the answer was sent. 0 if a fault left the call without an answer.
   */
  status: number;
}

/** The log keeps at most this many calls. The next call drops the older half. */
const keptMax = 20_000;

export interface CallLog {
  add(call: LoggedCall): void;
  list(): readonly LoggedCall[];
}

export function createCallLog(): CallLog {
  const calls: LoggedCall[] = [];
  return {
    add: (call) => {
      calls.push(call);
      if (calls.length > keptMax) calls.splice(0, keptMax / 2);
    },
    list: () => calls,
  };
}
