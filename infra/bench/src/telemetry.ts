import type { Child } from './children';
import { loadOnce, rowOf, startArena } from './gateway-arena';
import type { LoadResult } from './load';
import { printRows, say } from './report';

const pairs = 4;
const rounds = 10;
const roundSeconds = 2;
const off = 'without telemetry';

/**
 * Compares a gateway that sends telemetry, for each kind of collector, with a gateway without telemetry. Both are
 * loaded at the same time, because the machine's speed changes more between rounds than telemetry changes the result.
 * Each pair has new processes, because V8 compiles each process differently.
 */
export async function benchTelemetry(): Promise<void> {
  const arena = await startArena();
  try {
    const endpoints = {
      'with a collector': (await arena.startCollector('collector')).url,
      'with a slow collector': (await arena.startCollector('slow-collector')).url,
      'with a collector that never answers': (await arena.startCollector('hanging-collector')).url,
      'with a collector that is not there': 'http://127.0.0.1:9',
    };
    const rows = [];
    for (const [name, url] of Object.entries(endpoints)) {
      const results = await compareAtOnce(name, arena.startGateway, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
      rows.push(rowOf(results, 'GET through the gateway, 32 connections each', name, off, 0.97));
    }
    printRows(
      'Telemetry',
      rows,
      `Ours has a collector (\`OTEL_EXPORTER_OTLP_ENDPOINT\`), and every other setting as it is. ${pairs} pairs of processes, ${rounds} rounds of ${roundSeconds} s each, both at once; the ratio is the median of the rounds' own.`,
    );
  } finally {
    await arena.stop();
  }
}

/** Loads both gateways at the same time. Resolves with the results of each, by round. */
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
    // The order alternates, because the process that is called first is slightly slower.
    if (pair % 2 === 1) both.reverse();
    const load = (seconds: number) =>
      Promise.all(
        both.map(async ([who, child]) => [who, await loadOnce(child, { seconds, warmUpSeconds: 0 })] as const),
      );
    // V8 compiles hot code for several seconds, so this load is not counted.
    await load(8);
    for (let round = 0; round < rounds; round += 1)
      for (const [who, result] of await load(roundSeconds)) results.get(who)?.push(result);
    await Promise.all(both.map(([, child]) => child.stop()));
    say(`pair ${pair + 1} of ${pairs} ${name}`);
  }
  return results;
}
