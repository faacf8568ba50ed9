import type { Child } from './children';
import { compare, rowOf, startArena } from './gateway-arena';
import { printRows } from './report';

const rounds = 9;
const off = 'without telemetry';

/**
 * The gateway with telemetry at its default, before collectors of every kind, beside itself without telemetry. The
 * collector is a process of its own, and takes its share of the same processors.
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
    const contestants = new Map<string, Child>([[off, await arena.startGateway()]]);
    for (const [name, url] of Object.entries(endpoints))
      contestants.set(name, await arena.startGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: url }));
    const results = await compare(contestants, rounds);
    printRows(
      'Telemetry',
      Object.keys(endpoints).map((name) => rowOf(results, 'GET through the gateway, 32 connections', name, off, 0.97)),
      `Ours has a collector (\`OTEL_EXPORTER_OTLP_ENDPOINT\`), and every other setting as it is. ${rounds} rounds; the ratio is the median of the rounds' own.`,
    );
  } finally {
    await arena.stop();
  }
}
