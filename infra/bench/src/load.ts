import autocannon from 'autocannon';
import type { CpuTime } from './children';

export interface Load {
  url: string;
  headers?: Record<string, string>;
  connections?: number;
  seconds?: number;
  warmUpSeconds?: number;
}

export interface LoadResult {
  requestsPerSecond: number;
  /**
   * The processor time of a request, over all threads of the server. Undefined if `cpuOf` is missing or returns
   * undefined.
   */
  cpuMicroseconds: number | undefined;
  p50Ms: number;
  p99Ms: number;
}

/**
 * Puts load on a server: first the warm-up, then the measured seconds. Throws if a measured request is not answered
 * with 2xx.
 */
export async function runLoad(
  { url, headers = {}, connections = 32, seconds = 5, warmUpSeconds = 2 }: Load,
  cpuOf?: () => CpuTime,
): Promise<LoadResult> {
  if (warmUpSeconds > 0) await autocannon({ url, headers, connections, duration: warmUpSeconds });
  const before = cpuOf?.();
  const result = await autocannon({ url, headers, connections, duration: seconds });
  const after = cpuOf?.();
  const refused = result.non2xx + result.errors + result.timeouts;
  if (refused > 0)
    throw new Error(`${url}: ${refused} of ${result.requests.total} requests were not answered with 2xx`);
  const used = before === undefined || after === undefined ? undefined : after - before;
  return {
    requestsPerSecond: result.requests.average,
    cpuMicroseconds: used === undefined ? undefined : used / result.requests.total,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}

export const requestsPerSecond = async (load: Load): Promise<number> => (await runLoad(load)).requestsPerSecond;
