import { createServer, type Server } from 'node:net';
import { probePostgres } from '../database/postgres-databases';
import { probeSite } from './probe-site';

const servers: Server[] = [];
afterAll(() => Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve)))));

/**
 * Listens, and answers the first bytes of each connection with `say`, or with nothing if `say` is null. Resolves with
 * host and port.
 */
async function listening(say: string | Buffer | null): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => say !== null && socket.end(say));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it has no port');
  return `127.0.0.1:${address.port}`;
}

/** Returns Postgres' message that refuses a startup packet. */
function fatal(code: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0Mno\0\0`);
  const length = Buffer.alloc(4);
  length.writeInt32BE(fields.length + 4);
  return Buffer.concat([Buffer.from('E'), length, fields]);
}

const page = 'HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
/** The limit is long, because an answer may be slow on a busy machine. */
const longMs = 120_000;
async function probe(http: string | null, sql: Buffer | null, withinMs = longMs) {
  const url = `postgres://a:b@${await listening(sql)}/c`;
  const database = { probe: (deadlineMs: number) => probePostgres(url, deadlineMs) };
  return probeSite({ url: `http://${await listening(http)}/`, headers: {}, database }, withinMs);
}

test('a probe without answers names both time limits, and does not count as an answer of the database', async () => {
  const silent = await probe(null, null, 100);
  expect(silent).toMatchObject({ http_status: null, sql_ok: false, sql_answered: false });
  expect(silent.detail).toMatch(/^http: .*timeout.*; sql: .*timeout/i);
});

test.each([
  ['28P01', true],
  ['3D000', true],
  ['57P03', false],
  ['53300', false],
])('a database that says %s has answered: %s', async (code, isAnswered) => {
  const answer = await probe(page, fatal(code));
  expect(answer).toMatchObject({ http_status: 500, sql_ok: false, sql_answered: isAnswered });
});
