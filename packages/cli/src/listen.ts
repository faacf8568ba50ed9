import { createHmac, randomBytes } from 'node:crypto';
import type { Event } from '@drydock/client';
import { openSession } from './config';
import { UsageError } from './exit';
import { clean } from './output';
import { tell } from './terminal';

export interface ListenOptions {
  context?: string;
  forwardTo: string;
  type?: string;
  resource?: string;
  secret?: string;
  /** In milliseconds. */
  timeout?: number;
}

/** The time that the receiver gets to answer, the same as for a real webhook. */
const answerMs = 15_000;

/**
 * Forwards each new event to the receiver at `forwardTo`, signed like a message to a webhook. Events are sent one at a
 * time, and each only once, even if the receiver fails. Ends at Ctrl-C or after `timeout`.
 */
export async function runListen({
  context,
  forwardTo,
  type,
  resource,
  timeout,
  ...given
}: ListenOptions): Promise<void> {
  if (!URL.canParse(forwardTo) || !/^https?:$/.test(new URL(forwardTo).protocol))
    throw new UsageError(`${forwardTo} is no URL`);
  const secret = given.secret ?? `whsec_${randomBytes(32).toString('base64')}`;
  const session = openSession(context);
  const signal = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  if (given.secret === undefined) tell(`Signed with ${secret}`);
  tell(`Events go to ${clean(forwardTo)} until Ctrl-C`);
  const filters = { ...(type === undefined ? {} : { type }), ...(resource === undefined ? {} : { resource }) };
  try {
    for await (const event of session.drydock.events({ ...filters, ...(signal === undefined ? {} : { signal }) }))
      process.stdout.write(
        `${clean(`${event.type}  ${event.resource}  ${await forward(event, forwardTo, secret)}`)}\n`,
      );
  } catch (error) {
    if (signal?.aborted !== true || error !== signal.reason) throw error;
  }
}

/** Forwards one event. Resolves with the status of the answer, or with an error code if no answer came. */
async function forward(event: Event, url: string, secret: string): Promise<string> {
  const body = JSON.stringify({ type: event.type, timestamp: event.at, data: event });
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${event.id}.${timestamp}.${body}`).digest('base64');
  const headers = {
    'content-type': 'application/json',
    'webhook-id': event.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMs),
    });
    await response.body?.cancel();
    return String(response.status);
  } catch (error) {
    const { cause } = Object(error);
    return String(Object(cause).code ?? Object(error).name ?? 'failed');
  }
}
