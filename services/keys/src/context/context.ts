import type { Pager } from '@drydock/service/http/paging';
import type { KeySecrets } from '../api-keys/api-key.secret';
import type { Sequencer } from '../events/sequencer';
import type { WebhookSecrets } from '../webhooks/webhook.secret';
import type { KeysDatabase } from './database.store';

/** The parts that a handler is given. */
export interface HandlerContext {
  database: KeysDatabase;
  pager: Pager;
  secrets: KeySecrets;
  webhookSecrets: WebhookSecrets;
  /** `host:port` that webhooks may lead to at any address. */
  webhooksAllowed: ReadonlySet<string>;
  sequencer: Pick<Sequencer, 'latest' | 'past'>;
  /** Resolves when every gateway knows of a change of a key's rights, so that the change may be answered. */
  gatewaysHave(): Promise<void>;
}
