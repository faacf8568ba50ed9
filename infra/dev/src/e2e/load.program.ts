// Thousands of clients in a process of its own, so that their work is not that of the test. Each keeps one connection and asks again as soon as it is answered, or when it was
// told to come back.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, errors } from 'undici';
import { z } from 'zod';

const setupSchema = z.object({
  base: z.string(),
  /** Clients by the key that they have. */
  groups: z.record(z.string(), z.object({ token: z.string(), clients: z.int() })),
  path: z.string(),
});
export type LoadSetup = z.infer<typeof setupSchema>;

export interface LoadTally {
  /** Milliseconds of each request that was carried out. */
  admittedMs: number[];
  /** Refusals with Retry-After. */
  shed: number;
  /** Everything else, by what it was. */
  wrong: Record<string, number>;
}

/** Clients of one address: the gateway shares connections by address. */
const clientsOfAnAddress = 200;
const tallies = new Map<string, LoadTally>();
let isOver = false;

function tallyOf(group: string): LoadTally {
  const found = tallies.get(group) ?? { admittedMs: [], shed: 0, wrong: {} };
  tallies.set(group, found);
  return found;
}

async function runClient({ base, path }: LoadSetup, group: string, token: string, number: number): Promise<void> {
  const address = Math.floor(number / clientsOfAnAddress) + 2;
  const client = new Client(base, {
    localAddress: `127.0.${address >> 8}.${address & 255}`,
    headersTimeout: 120_000,
    connect: { timeout: 60_000 },
  });
  const note = (what: string): void => {
    const { wrong } = tallyOf(group);
    wrong[what] = (wrong[what] ?? 0) + 1;
  };
  while (!isOver) {
    const startedMs = performance.now();
    try {
      const { statusCode, headers, body } = await client.request({ method: 'GET', path, headers: { authorization: `Bearer ${token}` } });
      await body.dump();
      const again = Number(headers['retry-after'] ?? Number.NaN);
      if (statusCode === 200) tallyOf(group).admittedMs.push(performance.now() - startedMs);
      else if (again >= 1) {
        tallyOf(group).shed += 1;
        await sleep(again * 1_000);
      } else note(String(statusCode));
    } catch (error) {
      note(error instanceof errors.UndiciError ? error.code : String(error));
    }
  }
  await client.close();
}

process.on('message', (message) => {
  if (message === 'end') {
    isOver = true;
    process.send?.(Object.fromEntries(tallies));
    return;
  }
  const setup = setupSchema.parse(message);
  let number = 0;
  for (const [group, { token, clients }] of Object.entries(setup.groups))
    for (let n = 0; n < clients; n += 1) void runClient(setup, group, token, number++);
});
// The test that started this process is gone.
process.on('disconnect', () => process.exit(0));
