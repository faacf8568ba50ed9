import { setTimeout as wait } from 'node:timers/promises';
import type { HandlerContext } from './context';

/** A gateway trusts a verification for 1 s from its question; a tenth is for the answer's way. */
const revocationWaitMs = 1_100;

export const waitForGateways = (): Promise<void> => wait(revocationWaitMs);

/**
 * Resolves once no gateway trusts a verification any more that is older than the last commit. A change of a key's
 * rights waits for it before it answers, so that no request after the answer is judged by the old rights.
 */
export const seenEverywhere = ({ gatewaysHave }: Pick<HandlerContext, 'gatewaysHave'>): Promise<void> => gatewaysHave();
