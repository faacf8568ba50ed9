import { z } from 'zod';
import type { CommonCode, HostError } from '../host/host-error';

/**
 * The fields that every change has. `fence` is the number of the workflow's claim as text. `workflow_id` is only
 * recorded in the ledger.
 */
export const changeFields = { fence: z.string().regex(/^\d{1,19}$/), workflow_id: z.string().max(64).optional() };
export const changeSchema = z.strictObject(changeFields);
export type Change = z.infer<typeof changeSchema>;

/** How the ledger names a change. `detail` is the state before it, such as the release that is to be replaced. */
export interface ChangeName {
  op: string;
  detail?: string | undefined;
}

/** The name of the protocol to which the connection of a job's channel is upgraded. */
export const channelProtocol = 'drydock-channel';

/** The id of the site or database that a call is about, as its path has it. */
export const thingIdSchema = z.uuid().transform((id) => id.toLowerCase());

export const refusalSchema = z.object({ code: z.string(), detail: z.string() });

export interface Parties {
  issuer: string;
  audience: string;
}

/** The agreement between a kind of host and its callers, without the calls themselves. */
export interface ControlProtocol<Code extends string> {
  /** The plural noun in the paths: `sites` or `databases`, as in `/control/sites/{siteId}`. */
  things: string;
  /** Issuer and audience of the token in each call by a caller that changes things. */
  parties: Parties;
  /**
   * Issuer and audience of the token in each call by a caller that only reads. Such a caller has a separate secret, and
   * never gets an answer that holds a password.
   */
  readers: Parties;
  /** Every code with which a call may be refused, and its HTTP status. */
  statuses: Readonly<Record<Code | CommonCode, number>>;
  /** The class of errors that the client throws for a refusal. */
  Refusal: new (
    code: Code | CommonCode,
    detail: string,
    options?: ErrorOptions,
  ) => HostError<Code | CommonCode>;
}

type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/**
 * A call about one site or database, in the form of the README. `PUT` changes the site or database itself. `POST
 * /freeze` and `DELETE /releases/{id}` name a path below it.
 */
export type Call = Method | `${Method} /${string}`;

/**
 * The method and the path of a call. `things` and `id` are written into the path as given. A call about the whole host
 * has no id.
 */
export function splitCall(call: Call, things: string, id: string | null): { method: string; path: string } {
  const [method = '', rest = ''] = call.split(' ');
  return { method, path: id === null ? `/control${rest}` : `/control/${things}/${id}${rest}` };
}
