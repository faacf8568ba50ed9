import { request } from 'undici';

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  body?: unknown;
  /** Makes a seeding that was interrupted repeatable: the second call answers what the first one did. */
  idempotencyKey?: string;
}

export interface Answer {
  status: number;
  body: unknown;
}

/** One caller of the public API, by one key: the demo is made as a customer would make it. */
export type Api = (path: string, call?: Call) => Promise<Answer>;

export const apiOf =
  (baseUrl: string, token: string): Api =>
  async (path, { method = 'GET', body, idempotencyKey } = {}) => {
    const response = await request(new URL(path, baseUrl), {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    const answer: Answer = { status: response.statusCode, body: text === '' ? null : JSON.parse(text) };
    if (answer.status >= 400) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return answer;
  };
