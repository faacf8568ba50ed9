import type { components } from './generated/openapi';

type Event = components['schemas']['Event'];

/**
 * The message is not from Drydock, was changed, or is too old. The receiver should answer 400 and ignore the message.
 */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export interface WebhookMessage {
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The received body, before any parsing. */
  body: string;
}

/**
 * The largest difference between the receiver's clock and the time in the message. It limits how long a message that an
 * attacker has recorded would be accepted again.
 */
const toleranceSeconds = 300;

/**
 * Checks the signature and the time of a message to a webhook, in the format of standardwebhooks.com. Returns the event
 * in the message. `secret` begins with `whsec_`. @throws WebhookVerificationError
 */
export async function verifyWebhook(secret: string, { headers, body }: WebhookMessage): Promise<Event> {
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== 'string' || value === '')
      throw new WebhookVerificationError(`the message has no header ${name}`);
    return value;
  };
  const [id, timestamp, signatures] = [header('webhook-id'), header('webhook-timestamp'), header('webhook-signature')];
  const ageSeconds = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp) || ageSeconds > toleranceSeconds)
    throw new WebhookVerificationError(`the message is of another time than now (${toleranceSeconds} s)`);
  const secretBytes = bytesOf(secret.replace(/^whsec_/, ''));
  if (secretBytes.length === 0) throw new WebhookVerificationError('the secret is none of a webhook');
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', secretBytes, algorithm, false, ['verify']);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  // While the secret is being changed, a message has two signatures: one by the old secret, and one by the new.
  for (const signature of signatures.split(' ')) {
    if (!signature.startsWith('v1,')) continue;
    if (!(await crypto.subtle.verify('HMAC', key, bytesOf(signature.slice(3)), signed))) continue;
    const message: { data: Event } = JSON.parse(body);
    return message.data;
  }
  throw new WebhookVerificationError('no signature of the message is by this secret');
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
