/** A complete request. */
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

/** An error that becomes the answer to the call. */
export class Refusal extends Error {
  readonly reply: Reply;

  constructor(reply: Reply) {
    super(`refused with ${reply.status}`);
    this.name = 'Refusal';
    this.reply = reply;
  }
}
