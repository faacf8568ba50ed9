import { setTimeout as wait } from 'node:timers/promises';
import type { HandlerContext } from './context';

/**
 * Resolves once no gateway trusts a verification any more that is older than the commit before. A change of what a key may do waits for it and only then
 * answers, so that no request that begins after the answer is judged by what was.
 */
export const seenEverywhere = ({ revocationWaitMs }: Pick<HandlerContext, 'revocationWaitMs'>): Promise<void> => wait(revocationWaitMs);
