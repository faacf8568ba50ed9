import { jsonReply, Refusal } from '../protocol/call';

/** A refusal by the vendor: a status, and a sentence for people. */
export const refused = (status: 401 | 404 | 409 | 422, message: string): Refusal =>
  new Refusal(jsonReply(status, { error: { message }, type: 'error' }));
