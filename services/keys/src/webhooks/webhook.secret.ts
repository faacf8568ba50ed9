import { deriveKey, nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process/secrets';
import { Webhook } from 'standardwebhooks';

/** The secrets of webhooks: derived from the id and the generation, so that they stand in no row. Of https://www.standardwebhooks.com. */
export interface WebhookSecrets {
  /** `whsec_` and 32 bytes as base64. */
  of(webhookId: string, generation: number): string;
  /** The same once more, by the secret of ours of that name. Throws when it is no longer accepted. */
  ofAgain(webhookId: string, generation: number, madeWith: string | undefined): string;
  /** Names the secret of ours that they come from now. */
  madeWith: string;
  /**
   * The headers of a message, signed by the generation, and by the one before while that is still good. While our own secret is rotated each is signed
   * by all of them, since a receiver has what it was once shown.
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
      const signing = (hasPrevious ? [generation, generation - 1] : [generation]).flatMap((each) => allOf(webhookId, each));
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
