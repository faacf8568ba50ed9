// Plays an organisation that attacks with its API keys, sites and databases until this process is killed. The attacks
// run in a process of their own, so that they do not slow down the test that measures the calls of other organisations.
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { greedyAttacks, greedySetupSchema } from './greedy-attacks';

const worstSetupSchema = z.object({
  kind: z.literal('worst'),
  gatewayPort: z.int(),
  /** Two keys of the same organisation. */
  keys: z.tuple([z.string(), z.string()]),
  /** The URLs of the sites whose pages the attack requests. */
  siteUrls: z.array(z.string()),
  pages: z.record(z.string(), z.string()),
  /**
   * The databases whose sessions the attack uses up. The databases of `siteUrls` are not among them, because the pages
   * of a site without a free session cannot attack.
   */
  databaseUrls: z.array(z.string()),
  /** The path of the event stream of a long workflow. */
  events: z.string(),
});
const setupSchema = z.discriminatedUnion('kind', [worstSetupSchema, greedySetupSchema]);
export type AttackerSetup = z.infer<typeof setupSchema>;
type WorstSetup = z.infer<typeof worstSetupSchema>;

/** How often each answer came, by attack and answer. */
export type Tally = Record<string, number>;

const bodiesAtOnce = 600;
const streamsAtOnce = 200;
/** The sessions that the attacker opens to each database. The role of a site may have fewer. */
const sessionsOfASite = 60;
/**
 * The pause after which the attacker repeats an attack, in milliseconds. The attacker ignores Retry-After, and requests
 * pages without a pause.
 */
const againMs = 1_000;

const tally: Tally = {};
const count = (attack: string, answer: string | number): void => {
  const name = `${attack} ${answer}`;
  tally[name] = (tally[name] ?? 0) + 1;
};

/**
 * Sends `head` and then nothing. Resolves with the status and code of the answer when the connection ends, after 60 s
 * at the latest.
 */
function dangle(port: number, head: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' }, () => socket.write(head));
    let answer = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (answer.length < 2_000) answer += text;
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      const [status, code] = [/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1], /"code":"(\w+)"/.exec(answer)?.[1]];
      resolve([status ?? 'closed', ...(code === undefined ? [] : [code])].join(' '));
    });
    setTimeout(() => socket.destroy(), 60_000);
  });
}

async function repeat(attack: string, once: () => Promise<string | number>): Promise<never> {
  for (;;) {
    count(
      attack,
      await once().catch((error: unknown) =>
        error instanceof Error && 'code' in error ? String(error.code) : 'failed',
      ),
    );
    await sleep(attack.startsWith('page') ? 0 : againMs);
  }
}

const request = (line: string, token: string, more: string[] = []): string =>
  [`${line} HTTP/1.1`, 'Host: drydock', `Authorization: Bearer ${token}`, ...more, '', ''].join('\r\n');

const attacks: Readonly<Record<string, (setup: WorstSetup) => void>> = {
  pages: ({ siteUrls, pages }) => {
    for (const url of siteUrls)
      for (const [name, path] of Object.entries(pages)) {
        void repeat(`page ${name}`, async () => {
          const response = await fetch(new URL(path, url), { signal: AbortSignal.timeout(60_000) });
          await response.arrayBuffer();
          return response.status;
        });
      }
  },
  connections: ({ databaseUrls }) => {
    const hold = async (databaseUrl: string): Promise<string> => {
      const client = new pg.Client({ connectionString: databaseUrl });
      const closed = new Promise((resolve) => client.once('error', resolve).once('end', resolve));
      await client.connect();
      count('connections', 'held');
      await closed;
      return 'ended';
    };
    for (const databaseUrl of databaseUrls)
      for (let n = 0; n < sessionsOfASite; n += 1) void repeat('connections', () => hold(databaseUrl));
  },
  bodies: ({ gatewayPort, keys }) => {
    const more = ['Content-Type: application/json', 'Content-Length: 500'];
    for (let n = 0; n < bodiesAtOnce; n += 1)
      void repeat('bodies', () => dangle(gatewayPort, `${request('POST /v1/sites', keys[n % 2] ?? keys[0], more)}{`));
  },
  streams: ({ gatewayPort, keys, events }) => {
    for (let n = 0; n < streamsAtOnce; n += 1)
      void repeat('streams', () => dangle(gatewayPort, request(`GET ${events}`, keys[0], ['Connection: close'])));
  },
};

process.on('message', (message) => {
  if (message === 'tally') {
    process.send?.(tally);
    return;
  }
  const setup = setupSchema.parse(message);
  if (setup.kind === 'worst') for (const begin of Object.values(attacks)) begin(setup);
  else
    for (const [attack, { times, once }] of Object.entries(greedyAttacks))
      for (let n = 0; n < times; n += 1) void repeat(attack, () => once(setup, n));
});
// The test has ended, so the attack must not continue.
process.on('disconnect', () => process.exit(0));
