import { setTimeout as wait } from 'node:timers/promises';
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

/** A gateway trusts a verification for 1 s from its question; a tenth is for the answer's way. */
const revocationWaitMs = 1_100;

export const waitForGateways = (): Promise<void> => wait(revocationWaitMs);

/**
 * Resolves once no gateway trusts a verification any more that is older than the last commit. A change of a key's
 * rights waits for it before it answers, so that no request after the answer is judged by the old rights.
 */
export const seenEverywhere = ({ gatewaysHave }: Pick<HandlerContext, 'gatewaysHave'>): Promise<void> => gatewaysHave();
