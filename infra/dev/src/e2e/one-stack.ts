import { isDeepStrictEqual } from 'node:util';
import { queueBackends } from '@drydock/testing/scope';
import { type StackOptions, startStack as startOwnStack, type TestStack } from '@drydock/testing/stack';
import { type Collector, startCollector as startOwnCollector } from './collector';

interface Shared {
  collector?: Promise<Collector>;
  stack?: Promise<TestStack>;
}
/** The stack and the collector that suites of whole-stack.test.ts share. Null if a suite runs alone. */
let shared: Shared | null = null;

/** Makes the suites of this Jest process share one stack and one collector. The returned function stops both. */
export function shareStack(): () => Promise<void> {
  const here: Shared = {};
  shared = here;
  return async () => {
    shared = null;
    await here.stack?.then((stack) => stack.stop());
    await here.collector?.then((collector) => collector.close());
  };
}

/** Starts a collector, or returns the shared collector, whose `close` then does nothing. */
export async function startCollector(): Promise<Collector> {
  if (shared === null) return startOwnCollector();
  shared.collector ??= startOwnCollector();
  return { ...(await shared.collector), close: () => undefined };
}

/**
 * Starts a stack, or returns the shared stack, whose `stop` then does nothing. A suite with other options than those of
 * the shared stack gets its own stack.
 */
export async function startStack(options: StackOptions): Promise<TestStack> {
  if (shared === null) return startOwnStack(options);
  const { url: otlpEndpoint } = await startCollector();
  const whole = {
    queueBackend: queueBackends()[0] ?? 'postgres',
    otlpEndpoint,
    environment: { DRYDOCK_DEMO: 'sites' },
  } as const;
  if (!isDeepStrictEqual({ ...whole, ...options }, whole)) return startOwnStack(options);
  shared.stack ??= startOwnStack(whole);
  return { ...(await shared.stack), stop: async () => undefined };
}
