import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  body?: unknown;
  /** With this key a repeated call gets the answer of the first call, so an interrupted seeding can run again. */
  idempotencyKey?: string;
}

export interface Answer {
  status: number;
  body: unknown;
}

/** Calls the public API with one key. The demo's resources are created by such calls, as a customer creates them. */
export type Api = (path: string, call?: Call) => Promise<Answer>;

/**
 * The most attempts of a call. Every call of a seed can be repeated. A call may be refused for a while, because the
 * machine is busy during the start, polling has used up the rate limit, or a nightly backup locks the site.
 */
const triesMax = 30;
/** Tells whether the same call can succeed later. */
const isPassing = ({ status, text }: { status: number; text: string }): boolean =>
  status === 408 ||
  status === 429 ||
  status === 503 ||
  (status === 422 && text.includes('"/problems/operation_in_progress"'));

export const apiOf =
  (baseUrl: string, token: string): Api =>
  async (path, call = {}) => {
    for (let attempt = 1; ; attempt += 1) {
      const { answer, text, retryAfterSeconds } = await callOnce(new URL(path, baseUrl), token, call);
      if (answer.status < 400) return answer;
      if (!isPassing({ status: answer.status, text }) || attempt === triesMax)
        throw new Error(`${call.method ?? 'GET'} ${path} answered ${answer.status}: ${text}`);
      await sleep(retryAfterSeconds * 1_000);
    }
  };

async function callOnce(url: URL, token: string, { method = 'GET', body, idempotencyKey }: Call) {
  const response = await request(url, {
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
  return { answer, text, retryAfterSeconds: Number(response.headers['retry-after'] ?? 1) };
}
