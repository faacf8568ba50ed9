import type { Pager } from '@drydock/service/http';
import type { KeySecrets } from '../secrets/api-key.secret';
import type { WebhookSecrets } from '../secrets/webhook.secret';
import type { KeysDatabase } from './database.store';

/** The sequence numbers of events that this process knows. */
export interface EventNumbers {
  /** The last sequence number that this process knows of. */
  latest(): bigint;
  /** Resolves once a number after `seq` exists, or when `signal` is aborted. */
  past(seq: bigint, signal: AbortSignal): Promise<void>;
}

/** The parts that a handler is given. */
export interface HandlerContext {
  database: KeysDatabase;
  pager: Pager;
  secrets: KeySecrets;
  webhookSecrets: WebhookSecrets;
  /** `host:port` that webhooks may lead to at any address. */
  webhooksAllowed: ReadonlySet<string>;
  sequencer: EventNumbers;
  /** Resolves when every gateway knows of a change of a key's rights, so that the change may be answered. */
  gatewaysHave(): Promise<void>;
}
