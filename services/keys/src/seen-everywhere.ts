import { setTimeout as wait } from 'node:timers/promises';
import type { HandlerContext } from './context';

/** A gateway trusts a verification for 1 s from asking; the tenth is for the answer's way. */
const revocationWaitMs = 1_100;

export const waitForGateways = (): Promise<void> => wait(revocationWaitMs);

/**
 * Resolves once no gateway trusts a verification any more that is older than the commit before. A change of what a key may do waits for it and only then
 * answers, so that no request that begins after the answer is judged by what was.
 */
export const seenEverywhere = ({ gatewaysHave }: Pick<HandlerContext, 'gatewaysHave'>): Promise<void> => gatewaysHave();
