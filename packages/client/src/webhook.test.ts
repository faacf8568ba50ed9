import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, type WebhookMessage, WebhookVerificationError } from './drydock';

const secretOf = (letter: string): string => `whsec_${Buffer.from(letter.repeat(32)).toString('base64')}`;
const event = { id: 'event-1', type: 'workflow.succeeded', resource: '/v1/sites/a' };
const body = JSON.stringify({ type: event.type, timestamp: '2026-11-23T18:39:23.993Z', data: event });

/** Signs a message with the reference library of standardwebhooks.com. */
function message(secrets: readonly string[], at = new Date()): { headers: Record<string, string>; body: string } {
  const signatures = secrets.map((secret) => new Webhook(secret).sign('event-1', at, body));
  const headers = {
    'webhook-id': 'event-1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
  return { headers, body };
}

test('a message that the standard’s library has signed is taken, also by one of two signatures and from Headers', async () => {
  expect(await verifyWebhook(secretOf('a'), message([secretOf('a')]))).toEqual(event);
  expect(await verifyWebhook(secretOf('a'), message([secretOf('b'), secretOf('a')]))).toEqual(event);
  const { headers } = message([secretOf('a')]);
  expect(await verifyWebhook(secretOf('a'), { headers: new Headers(headers), body })).toEqual(event);
});

test.each<[string, (good: ReturnType<typeof message>) => WebhookMessage]>([
  ['another body', (good) => ({ ...good, body: `${body} ` })],
  ['another id', (good) => ({ ...good, headers: { ...good.headers, 'webhook-id': 'event-2' } })],
  [
    'another time',
    (good) => ({
      ...good,
      headers: { ...good.headers, 'webhook-timestamp': String(Math.floor(Date.now() / 1_000) - 5) },
    }),
  ],
  ['no signature', ({ headers: { 'webhook-signature': _gone, ...headers } }) => ({ headers, body })],
  [
    'a signature that is no base64',
    (good) => ({ ...good, headers: { ...good.headers, 'webhook-signature': 'v1,%%%' } }),
  ],
  [
    'another version',
    (good) => ({
      ...good,
      headers: { ...good.headers, 'webhook-signature': good.headers['webhook-signature']?.replace('v1,', 'v2,') },
    }),
  ],
  ['another secret', () => message([secretOf('b')])],
  ['an hour ago', () => message([secretOf('a')], new Date(Date.now() - 3_600_000))],
  ['in an hour', () => message([secretOf('a')], new Date(Date.now() + 3_600_000))],
])('a message with %s is refused', async (_what, change) => {
  await expect(verifyWebhook(secretOf('a'), change(message([secretOf('a')])))).rejects.toThrow(
    WebhookVerificationError,
  );
});

test('the receiver of the guide takes what is signed, and nothing else', () => {
  const guide = fs.readFileSync(path.resolve(__dirname, '../../../docs/guides/events.md'), 'utf8');
  const [, receiver = ''] = /^```js\n(.*?)^```$/ms.exec(guide) ?? [];
  const messages = [message([secretOf('a')]), message([secretOf('b')])];
  const send = `for (const { headers, body } of ${JSON.stringify(messages)})
    console.log((await receive(new Request('http://receiver.test', { method: 'POST', headers, body }))).status);`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', `${receiver}\n${send}`], {
    cwd: __dirname, // Node finds the package by its name from this folder
    env: { DRYDOCK_WEBHOOK_SECRET: secretOf('a') },
    encoding: 'utf8',
  });
  expect(output).toBe('workflow.succeeded /v1/sites/a\n204\n400\n');
});
