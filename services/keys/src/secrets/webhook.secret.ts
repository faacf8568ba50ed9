import { deriveKey, nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process';
import { Webhook } from 'standardwebhooks';

/**
 * The secrets of webhooks, in the form of https://www.standardwebhooks.com. They are derived from the service's secret
 * with the webhook's id and generation, so that no row contains them.
 */
export interface WebhookSecrets {
  /** A secret: `whsec_` and 32 bytes as base64. */
  of(webhookId: string, generation: number): string;
  /**
   * Derives a secret again. `madeWith` names the service's secret from which it was derived. Throws if that secret of
   * the service is no longer accepted.
   */
  ofAgain(webhookId: string, generation: number, madeWith: string | undefined): string;
  /** The name of the service's secret from which new secrets are derived. */
  madeWith: string;
  /**
   * The headers of a signed message. The secrets of all generations from `oldestGeneration` on sign, at most the ten
   * newest. During a rotation of the service's own secret, each generation has several secrets. All of them sign,
   * because the receiver may have any of them.
   */
  sign(
    message: { id: string; at: Date; body: string },
    signer: { webhookId: string; generation: number; oldestGeneration: number },
  ): Record<string, string>;
}

/** The most generations that sign a message. The limit keeps the header short if a webhook is rotated in a loop. */
const signingMax = 10;

/**
 * @param secrets in the form of WEBHOOK_SECRET. The API shows the secrets of webhooks, and the worker signs with them.
 * So the API and the worker need the same value.
 */
export function createWebhookSecrets(secrets: string): WebhookSecrets {
  const [current] = secretsIn(secrets);
  const allOf = (webhookId: string, generation: number): string[] =>
    secretsIn(secrets).map((each) => secretOf(each, webhookId, generation));
  return {
    of: (webhookId, generation) => secretOf(current, webhookId, generation),
    ofAgain: (webhookId, generation, madeWith) => secretOf(secretNamed(secrets, madeWith), webhookId, generation),
    madeWith: nameOfSecret(current),
    sign: ({ id, at, body }, { webhookId, generation, oldestGeneration }) => {
      const count = Math.min(generation - oldestGeneration + 1, signingMax);
      const signing = Array.from({ length: count }, (_, age) => allOf(webhookId, generation - age)).flat();
      return {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': signing.map((each) => new Webhook(each).sign(id, at, body)).join(' '),
      };
    },
  };
}

const secretOf = (secretHex: string, webhookId: string, generation: number): string =>
  `whsec_${deriveKey(secretHex, `webhook:${webhookId}:${generation}`).toString('base64')}`;
