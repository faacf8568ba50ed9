import { Webhook } from 'standardwebhooks';
import { uuidv7 } from 'uuidv7';
import { createWebhookSecrets } from './webhook.secret';

test('during a rotation of the service’s secret, a message verifies with the old and with the new secret', () => {
  const [before, after] = ['a1'.repeat(32), 'b2'.repeat(32)];
  const [old, both, renewed] = [
    createWebhookSecrets(before),
    createWebhookSecrets(`${after},${before}`),
    createWebhookSecrets(after),
  ];
  const webhookId = uuidv7();
  const message = { id: 'msg_1', at: new Date(), body: '{"type":"site.restored"}' };
  const isGood = (secret: string, signed: Record<string, string>): boolean => {
    try {
      new Webhook(secret).verify(message.body, signed);
      return true;
    } catch {
      return false;
    }
  };
  const signedBy = (secrets: typeof both, oldestGeneration = 2) =>
    secrets.sign(message, { webhookId, generation: 2, oldestGeneration });
  expect([isGood(old.of(webhookId, 2), signedBy(both)), isGood(renewed.of(webhookId, 2), signedBy(both))]).toEqual([
    true,
    true,
  ]);
  expect([isGood(old.of(webhookId, 1), signedBy(both)), isGood(old.of(webhookId, 1), signedBy(both, 1))]).toEqual([
    false,
    true,
  ]);
  expect(isGood(old.of(webhookId, 2), signedBy(renewed))).toBe(false);
  expect([both.of(webhookId, 2), both.ofAgain(webhookId, 2, old.madeWith)]).toEqual([
    renewed.of(webhookId, 2),
    old.of(webhookId, 2),
  ]);
});
