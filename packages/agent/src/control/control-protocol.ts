import { z } from 'zod';

/**
 * The fields that every change has. `fence` is the fence of the workflow's claim as decimal text, because it may exceed
 * the exact integers of JSON. `workflow_id` is only recorded.
 */
export const changeFields = { fence: z.string().regex(/^\d{1,19}$/), workflow_id: z.string().max(64).optional() };
export const changeSchema = z.strictObject(changeFields);
export type Change = z.infer<typeof changeSchema>;

/**
 * The name of a change in the agent's ledger (`Ledger`). `detail` says more about the change, such as the release that
 * a switch replaces, or the id of a submitted job.
 */
export interface ChangeName {
  op: string;
  detail?: string | undefined;
}

/** The name of the protocol to which the connection of a job's channel is upgraded. */
export const channelProtocol = 'drydock-channel';

/** The id of a site or database in a path. It becomes lower case, because ids are compared as text. */
export const thingIdSchema = z.uuid().transform((id) => id.toLowerCase());

export const refusalSchema = z.object({ code: z.string(), detail: z.string() });

/**
 * The codes with which every agent may refuse a call, and their HTTP statuses. `unreachable` is thrown by the client
 * itself; the outcome of the call is then unknown.
 */
export const commonStatuses = {
  invalid_request: 422,
  unauthenticated: 401,
  readers_only_ask: 403,
  unknown_route: 404,
  stale_fence: 409,
  unknown_job: 404,
  job_differs: 409,
  no_channel: 409,
  internal: 500,
  unreachable: 503,
} as const;

export type CommonCode = keyof typeof commonStatuses;

/**
 * A refusal with a stable code. `message` is for logs and may name the cause. Each kind of agent has a subclass with
 * its own codes in addition to the common codes.
 */
export class HostError<Code extends string = CommonCode> extends Error {
  override readonly name: string = 'HostError';
  readonly code: Code;

  constructor(code: Code, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.code = code;
  }
}

export interface Parties {
  issuer: string;
  audience: string;
}

/** The part of an agent's protocol that all its calls share: paths, tokens and codes. */
export interface ControlProtocol<Code extends string> {
  /** The plural noun in the paths: `sites` or `databases`, as in `/control/sites/{siteId}`. */
  things: string;
  /** Issuer and audience of the token in each call by a caller that changes things. */
  parties: Parties;
  /**
   * Issuer and audience of the token in each call by a reader, which is a caller that only reads. A reader has a
   * separate secret, and never gets an answer that holds a password.
   */
  readers: Parties;
  statuses: Readonly<Record<Code | CommonCode, number>>;
  /** The error class that the client throws for a refusal. */
  Refusal: new (
    code: Code | CommonCode,
    detail: string,
    options?: ErrorOptions,
  ) => HostError<Code | CommonCode>;
}

type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/**
 * A call, written as in the README of this package. A method alone, such as `PUT`, is about the site or database
 * itself. `POST /freeze` and `DELETE /releases/{id}` name a path below the site or database.
 */
export type Call = Method | `${Method} /${string}`;

/**
 * The method and the path of a call. `things` and `id` are written into the path unencoded. A call about the agent
 * itself has no id.
 */
export function splitCall(call: Call, things: string, id: string | null): { method: string; path: string } {
  const [method = '', rest = ''] = call.split(' ');
  return { method, path: id === null ? `/control${rest}` : `/control/${things}/${id}${rest}` };
}
