import { deriveKey, nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process';
import { Webhook } from 'standardwebhooks';

/**
 * The secrets of webhooks, derived from id and generation, so that no row contains them. In the form of
 * https://www.standardwebhooks.com.
 */
export interface WebhookSecrets {
  /** `whsec_` and 32 bytes as base64. */
  of(webhookId: string, generation: number): string;
  /** Derives the secret again, from our secret of that name. Throws if that is no longer accepted. */
  ofAgain(webhookId: string, generation: number, madeWith: string | undefined): string;
  /** The name of our secret from which they are derived. */
  madeWith: string;
  /**
   * The headers of a message, signed with the generation, and with the one before while that is still valid. While our
   * own secret is rotated, each message is signed with all secrets, because a receiver has the one that was shown to
   * its owner.
   */
  sign(
    message: { id: string; at: Date; body: string },
    signer: { webhookId: string; generation: number; hasPrevious: boolean },
  ): Record<string, string>;
}

/** @param secrets as WEBHOOK_SECRET has them; shared by those who show secrets and those who sign */
export function createWebhookSecrets(secrets: string): WebhookSecrets {
  const [current] = secretsIn(secrets);
  const allOf = (webhookId: string, generation: number): string[] =>
    secretsIn(secrets).map((each) => secretOf(each, webhookId, generation));
  return {
    of: (webhookId, generation) => secretOf(current, webhookId, generation),
    ofAgain: (webhookId, generation, madeWith) => secretOf(secretNamed(secrets, madeWith), webhookId, generation),
    madeWith: nameOfSecret(current),
    sign: ({ id, at, body }, { webhookId, generation, hasPrevious }) => {
      const signing = (hasPrevious ? [generation, generation - 1] : [generation]).flatMap((each) =>
        allOf(webhookId, each),
      );
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
