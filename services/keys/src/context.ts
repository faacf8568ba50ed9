import type { Pager } from '@drydock/service/http/paging';
import type { KeySecrets } from './api-keys/api-key.secret';
import type { KeysDatabase } from './database.store';
import type { Sequencer } from './events/sequencer';
import type { WebhookSecrets } from './webhooks/webhook.secret';

/** What a handler may use. */
export interface HandlerContext {
  database: KeysDatabase;
  pager: Pager;
  secrets: KeySecrets;
  webhookSecrets: WebhookSecrets;
  /** `host:port` that webhooks may lead to wherever it is. */
  webhooksAllowed: ReadonlySet<string>;
  sequencer: Pick<Sequencer, 'latest' | 'past'>;
  /** How long a change of what a key may do waits before it is answered: longer than any gateway trusts a verification. */
  revocationWaitMs: number;
}
