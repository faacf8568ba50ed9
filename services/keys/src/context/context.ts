import { setTimeout as wait } from 'node:timers/promises';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Pager } from '@drydock/service/http';
import type { KeySecrets } from '../secrets/api-key.secret';
import type { WebhookSecrets } from '../secrets/webhook.secret';
import type { KeysDatabase } from './database.store';

export interface EventNumbers {
  /**
   * Calls `heard` after events of `owner` may have got their numbers, until the returned function is called. Rarely,
   * `heard` is also called after only events of other owners have got their numbers.
   */
  watch(owner: EventOwner, heard: () => void): () => void;
}

/** The organisation and mode that an event belongs to. */
export interface EventOwner {
  orgId: string;
  mode: Mode;
}

export interface HandlerContext {
  database: KeysDatabase;
  pager: Pager;
  secrets: KeySecrets;
  webhookSecrets: WebhookSecrets;
  /** Receivers (`host:port`) that may have any address, even a private address. */
  webhooksAllowed: ReadonlySet<string>;
  sequencer: EventNumbers;
  /** Resolves once no gateway trusts a verification that is older than this call. */
  gatewaysHave(): Promise<void>;
}

/**
 * A gateway trusts a verification for 1 s, counted from its request for the verification. Another 100 ms are for
 * answers that are still on the network.
 */
const revocationWaitMs = 1_100;

export const waitForGateways = (): Promise<void> => wait(revocationWaitMs);

/**
 * An endpoint that may take rights away from a key awaits this function after its commit and before its answer. So no
 * request after the answer is allowed by the old rights.
 */
export const seenEverywhere = ({ gatewaysHave }: Pick<HandlerContext, 'gatewaysHave'>): Promise<void> => gatewaysHave();
