import { Refusal, type Reply } from '../protocol/call';

/** The content type is exactly that of a real cluster, because clients compare it. */
const jsonReply = (status: number, body: unknown): Reply => ({
  status,
  headers: { 'content-type': 'application/json;charset=UTF-8' },
  body: JSON.stringify(body),
});

/** The answer to a handler's error: 500 with the text of the error, as in Proxmox. */
export const died = (message: string): Refusal => new Refusal(jsonReply(500, { data: null, message: `${message}\n` }));

export const unverified = (errors: Readonly<Record<string, string>>): Refusal =>
  new Refusal(jsonReply(400, { data: null, errors, message: 'Parameter verification failed.\n' }));

export const forbidden = (path: string, privilege: string): Refusal =>
  new Refusal(jsonReply(403, { data: null, message: `Permission check failed (${path}, ${privilege})\n` }));

/** The answer when the called node cannot reach the node that the call is for. */
export const unreachable = (): Refusal => new Refusal(jsonReply(595, { data: null, message: 'No route to host' }));

export const unauthorized = (): Reply => ({
  status: 401,
  headers: { 'content-type': 'text/plain' },
  body: 'authentication failure',
});
export const noSuchUri = (): Refusal =>
  new Refusal(jsonReply(501, { data: null, message: 'Method not implemented\n' }));

export const dataReply = (data: unknown): Reply => jsonReply(200, { data });
