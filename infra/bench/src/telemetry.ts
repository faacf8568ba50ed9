import type { TestStack } from '@drydock/testing/stack';
import { type Child, cpuTimeOf } from './children';
import { loadOnce, ratioOf, rowOf, startArena } from './gateway-arena';
import { addKeys } from './list-keys';
import { type LoadResult, runLoad } from './load';
import { printRows, type Row, say } from './report';
import { startBenchStack } from './stack';

/**
 * The number of pairs of gateways for each kind of collector: one gateway with telemetry, and one without. Each pair is
 * started anew and gets `rounds` rounds of load.
 */
const pairs = 2;
const rounds = 10;
const roundSeconds = 2;
const off = 'without telemetry';
/** The seconds of a first load, which is not counted, because V8 compiles hot code for several seconds. */
const warmUpSeconds = 8;
/**
 * The number of pairs of whole Drydocks: one with telemetry, and one without. The two get load by turns, in
 * `stackRounds` rounds. Pairs differ by several percent, however many rounds they get, so it takes many pairs to see a
 * difference of 3 %.
 */
const stackPairs = 10;
const stackRounds = 30;
/** A whole Drydock needs a longer first load: it answers fewer requests in a second, so V8 compiles its code later. */
const stackWarmUpSeconds = 60;

/**
 * Compares a whole Drydock that sends telemetry with one that sends none. Then compares two gateways in the same way,
 * for each kind of collector. Both processes of a pair are started anew, because V8 compiles no two processes alike.
 */
export async function benchTelemetry(): Promise<void> {
  const arena = await startArena();
  try {
    const collector = (await arena.startCollector('collector')).url;
    const endpoints = {
      'with a collector': collector,
      'with a slow collector': (await arena.startCollector('slow-collector')).url,
      'with a collector that never answers': (await arena.startCollector('hanging-collector')).url,
      'with a collector that is not there': 'http://127.0.0.1:9',
    };
    const { results: through, ratios } = await compareStacks('with a collector', collector);
    const whole = rowOf(through, 'GET /v1/api-keys of a whole Drydock', 'with a collector', off, 0.97);
    const rows: Row[] = [{ ...whole, ratio: mean(ratios) }];
    for (const [name, url] of Object.entries(endpoints)) {
      const results = await compareAtOnce(name, arena.startGateway, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
      rows.push(rowOf(results, 'GET through the gateway, 32 connections each', name, off));
    }
    printRows(
      'Telemetry',
      rows,
      `Ours has a collector (\`OTEL_EXPORTER_OTLP_ENDPOINT\`), and every other setting as it is. The processor time of the whole is that of gateway and service, in turns. Its ratio is the mean of ${stackPairs} pairs (standard error ${standardError(ratios).toFixed(3)}), and that of a pair is the median of its rounds. That of the gateway alone has a service that answers at once, ${pairs} pairs of processes, ${rounds} rounds of ${roundSeconds} s each, both at once. Its ratio is the median of the rounds' own.`,
    );
  } finally {
    await arena.stop();
  }
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** In two of three measurements, the mean is at most so far from the mean of endlessly many pairs. */
function standardError(values: readonly number[]): number {
  const middle = mean(values);
  const squares = values.map((value) => (value - middle) ** 2);
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / (values.length - 1) / values.length);
}

interface StackResults {
  /** The results by name, in the order of the rounds. */
  results: Map<string, LoadResult[]>;
  /** The ratio of each pair. */
  ratios: number[];
}

/** Puts load on the two whole Drydocks of each pair by turns. */
async function compareStacks(name: string, endpoint: string): Promise<StackResults> {
  const ratios: number[] = [];
  const results = new Map<string, LoadResult[]>([
    [name, []],
    [off, []],
  ]);
  for (let pair = 0; pair < stackPairs; pair += 1) {
    const started: TestStack[] = [];
    const start = async (environment: Record<string, string>): Promise<TestStack> => {
      const stack = await startBenchStack({ environment });
      started.push(stack);
      return stack;
    };
    try {
      const settings: [string, Record<string, string>][] = [
        [name, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }],
        [off, {}],
      ];
      // The order alternates from pair to pair, because the Drydock that starts first needs some percent more time.
      if (pair % 2 === 1) settings.reverse();
      const both: [string, TestStack][] = [];
      for (const [who, environment] of settings) both.push([who, await start(environment)]);
      for (const [, stack] of both) {
        await addKeys(stack.demo);
        await loadKeys(stack, stackWarmUpSeconds);
      }
      for (let round = 0; round < stackRounds; round += 1) {
        both.reverse();
        for (const [who, stack] of both) results.get(who)?.push(await loadKeys(stack, 1));
      }
    } finally {
      await Promise.all(started.map((stack) => stack.stop()));
    }
    const ratio = ratioOfLast(results, name, stackRounds);
    ratios.push(ratio);
    say(`pair ${pair + 1} of ${stackPairs} of a whole Drydock: ${ratio.toFixed(3)}`);
  }
  return { results, ratios };
}

/** Lists keys for some seconds. The processor time is that of the gateway and keys together. */
function loadKeys({ demo, processes }: TestStack, seconds: number): Promise<LoadResult> {
  const { gateway, keys } = processes();
  const headers = { authorization: `Bearer ${demo.live_key}` };
  return runLoad({ url: `${demo.base_url}/v1/api-keys`, headers, seconds, warmUpSeconds: 0 }, () => {
    const [ofGateway, ofKeys] = [cpuTimeOf(gateway?.pid), cpuTimeOf(keys?.pid)];
    return ofGateway === undefined || ofKeys === undefined ? undefined : ofGateway + ofKeys;
  });
}

/**
 * Puts load on the two gateways of each pair at the same time. If they took turns, changes of the machine's speed would
 * hide the effect of telemetry. Resolves with the results by name, in the order of the rounds.
 */
async function compareAtOnce(
  name: string,
  start: (env?: Record<string, string>) => Promise<Child>,
  env: Record<string, string>,
): Promise<Map<string, LoadResult[]>> {
  const results = new Map<string, LoadResult[]>([
    [name, []],
    [off, []],
  ]);
  for (let pair = 0; pair < pairs; pair += 1) {
    const both = [[name, await start(env)] as const, [off, await start()] as const];
    // The order alternates from pair to pair, because the process that gets its load first is slightly slower.
    if (pair % 2 === 1) both.reverse();
    const load = (seconds: number) =>
      Promise.all(
        both.map(async ([who, child]) => [who, await loadOnce(child, { seconds, warmUpSeconds: 0 })] as const),
      );
    await load(warmUpSeconds);
    for (let round = 0; round < rounds; round += 1)
      for (const [who, result] of await load(roundSeconds)) results.get(who)?.push(result);
    await Promise.all(both.map(([, child]) => child.stop()));
    say(`pair ${pair + 1} of ${pairs} ${name}: ${ratioOfLast(results, name, rounds).toFixed(2)}`);
  }
  return results;
}

/** The ratio of the last pair's rounds, which shows how far two pairs differ. */
function ratioOfLast(results: ReadonlyMap<string, readonly LoadResult[]>, name: string, count: number): number {
  const [ours = [], peers = []] = [name, off].map((who) => results.get(who)?.slice(-count));
  return ratioOf(ours, peers);
}
