import type { Socket } from 'node:net';
import type { z } from 'zod';
import { type Call, type Change, type ChangeName, splitCall, thingIdSchema } from './control-protocol';

export interface ControlAnswer {
  status: number;
  body?: unknown;
}

export interface ControlRoute {
  /** The fields of the answer that a reader gets. Without this schema readers may not make the call. */
  readerAnswer?: z.ZodType;
  method: string;
  /** A pattern whose groups are the ids in the path. */
  pattern: RegExp;
  /** Throws a HostError for a refusal, and a ZodError if the request does not follow the protocol. */
  handle: (ids: readonly string[], body: unknown) => Promise<ControlAnswer>;
}

/**
 * The route of upgraded connections: their path, and the function that takes the socket. `connect` throws a HostError
 * if no job waits for the connection.
 */
export interface ChannelRoute {
  pattern: RegExp;
  connect(ids: readonly string[], socket: Socket): void;
}

/**
 * The sites or databases of an agent. `change` finds a site or database, checks the fence, and runs the work after all
 * earlier changes of the same site or database.
 */
export interface Hosted<Known> {
  change<T>(id: string, name: ChangeName, change: Change, work: (known: Known) => Promise<T>): Promise<T>;
}

interface ChangeRoute<Body> {
  op: string;
  /** Returns the `detail` of the ledger's line; see {@link ChangeName}. */
  detail?: (body: Body) => string | undefined;
  body: z.ZodType<Body>;
}

export const ok = (body: unknown): ControlAnswer => ({ status: 200, body });
export const done: ControlAnswer = { status: 204 };

/**
 * Returns the functions with which an agent defines its routes, one line for each call. A placeholder such as `{jobId}`
 * in the path of a `route` stands for a second id. The handler gets that id as its last argument and must validate it.
 */
export function controlRoutesOf<Known>(things: string, hosted: Hosted<Known>) {
  const route = (
    call: Call,
    handle: (id: string, body: unknown, partId: string | undefined) => Promise<ControlAnswer>,
    readerAnswer?: z.ZodType,
  ): ControlRoute => {
    const { method, path } = splitCall(call, things, '{id}');
    return {
      method,
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`),
      handle: ([id, partId], body) => handle(thingIdSchema.parse(id), body, partId),
      ...(readerAnswer === undefined ? {} : { readerAnswer }),
    };
  };
  /** Defines a read that is about the agent itself, not about one site or database. */
  const hostRoute = (call: Call, handle: () => Promise<ControlAnswer>, readerAnswer: z.ZodType): ControlRoute => {
    const { method, path } = splitCall(call, things, null);
    return { method, pattern: new RegExp(`^${path}$`), handle, readerAnswer };
  };
  const change = <Body extends Change>(
    call: Call,
    { op, detail, body: schema }: ChangeRoute<Body>,
    work: (known: Known, body: Body) => Promise<unknown>,
  ): ControlRoute =>
    route(call, async (id, body) => {
      const wanted = schema.parse(body);
      const answer = await hosted.change(id, { op, detail: detail?.(wanted) }, wanted, (known) => work(known, wanted));
      return answer === undefined ? done : ok(answer);
    });
  return { route, hostRoute, change };
}
