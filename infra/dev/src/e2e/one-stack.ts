import { isDeepStrictEqual } from 'node:util';
import { queueBackends } from '@drydock/testing/scope';
import { type StackOptions, startStack as startOwnStack, type TestStack } from '@drydock/testing/stack';
import { type Collector, startCollector as startOwnCollector } from './collector';

interface Shared {
  collector?: Promise<Collector>;
  stack?: Promise<TestStack>;
}
/** The stack and the collector that the suites of this jest file share; null while each has its own. */
let shared: Shared | null = null;

/** From now on the suites of this jest file share one stack, of keys and sites and with a collector, until the function that this returns is called. */
export function shareStack(): () => Promise<void> {
  const here: Shared = {};
  shared = here;
  return async () => {
    shared = null;
    await here.stack?.then((stack) => stack.stop());
    await here.collector?.then((collector) => collector.close());
  };
}

/** {@link startOwnCollector}. A shared one goes on after `close`. */
export async function startCollector(): Promise<Collector> {
  if (shared === null) return startOwnCollector();
  shared.collector ??= startOwnCollector();
  return { ...(await shared.collector), close: () => undefined };
}

/** {@link startOwnStack}. A shared one goes on after `stop`; a suite that asks for another than the shared one gets its own. */
export async function startStack(options: StackOptions): Promise<TestStack> {
  if (shared === null) return startOwnStack(options);
  const { url: otlpEndpoint } = await startCollector();
  const whole = { queueBackend: queueBackends()[0] ?? 'postgres', otlpEndpoint, environment: { DRYDOCK_DEMO: 'sites' } } as const;
  if (!isDeepStrictEqual({ ...whole, ...options }, whole)) return startOwnStack(options);
  shared.stack ??= startOwnStack(whole);
  return { ...(await shared.stack), stop: async () => undefined };
}
