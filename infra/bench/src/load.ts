import autocannon from 'autocannon';

export interface Load {
  url: string;
  headers?: Record<string, string>;
  connections?: number;
  seconds?: number;
}

/** Requests per second after two seconds of warming up; refuses a run in which anything but 2xx was answered. */
export async function requestsPerSecond({ url, headers = {}, connections = 32, seconds = 5 }: Load): Promise<number> {
  await autocannon({ url, headers, connections, duration: 2 });
  const result = await autocannon({ url, headers, connections, duration: seconds });
  const refused = result.non2xx + result.errors + result.timeouts;
  if (refused > 0) throw new Error(`${url}: ${refused} of ${result.requests.total} requests were not answered with 2xx`);
  return result.requests.average;
}
