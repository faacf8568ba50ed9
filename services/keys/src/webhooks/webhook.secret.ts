import { deriveKey } from '@drydock/service/process/secrets';
import { Webhook } from 'standardwebhooks';

/** The secrets of webhooks: derived from the id and the generation, so that they stand in no row. Of https://www.standardwebhooks.com. */
export interface WebhookSecrets {
  /** `whsec_` and 32 bytes as base64. */
  of(webhookId: string, generation: number): string;
  /** The headers of a message, signed by the generation, and by the one before while that is still good. */
  sign(
    message: { id: string; at: Date; body: string },
    signer: { webhookId: string; generation: number; hasPrevious: boolean },
  ): Record<string, string>;
}

/** @param secretHex shared by those who show secrets and those who sign */
export function createWebhookSecrets(secretHex: string): WebhookSecrets {
  const of = (webhookId: string, generation: number): string =>
    `whsec_${deriveKey(secretHex, `webhook:${webhookId}:${generation}`).toString('base64')}`;
  return {
    of,
    sign: ({ id, at, body }, { webhookId, generation, hasPrevious }) => {
      const generations = hasPrevious ? [generation, generation - 1] : [generation];
      return {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': generations.map((each) => new Webhook(of(webhookId, each)).sign(id, at, body)).join(' '),
      };
    },
  };
}
