import net, { type AddressInfo, type Socket } from 'node:net';
import { createOwnedDatabase } from '../../test/databases';
import { ScramClient } from './scram-client';
import { openSession } from './session';

const password = 'never-in-clear';
const sockets = new Set<Socket>();
let received = '';
let server: net.Server | undefined;

/**
 * Plays a hostile server on a free port: sends `answer` to the first packet of each connection, and records what it
 * receives.
 */
async function takePort(answer: readonly number[]): Promise<string> {
  received = '';
  server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(Buffer.from(answer)));
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      // After a password message (0x70) or a query (0x51), the connection is closed, so that an unprotected client ends
      // too.
      if (chunk[0] === 0x70 || chunk[0] === 0x51) socket.end();
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `postgresql://postgres:${password}@127.0.0.1:${(server.address() as AddressInfo).port}/postgres`;
}

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
});

const authentication = (...rest: number[]): number[] => [0x52, 0, 0, 0, 4 + rest.length, ...rest];
const readyForQuery = [0x5a, 0, 0, 0, 5, 0x49];

test.each([
  ['the password in clear', authentication(0, 0, 0, 3)],
  ['the password as MD5', authentication(0, 0, 0, 5, 1, 2, 3, 4)],
  ['nothing at all', [...authentication(0, 0, 0, 0), ...readyForQuery]],
])('a server that asks for %s gets no answer', async (_what, answer) => {
  const url = await takePort(answer);
  await expect(openSession(url, { purpose: 'admin' })).rejects.toThrow('is none of ours');
  const messages = received.slice(received.lastIndexOf('\0\0') + 2);
  expect([received.includes(password), /md5[0-9a-f]{32}/.test(received), messages]).toEqual([false, false, '']);
});

test('our own servers accept the client', async () => {
  const { url } = await createOwnedDatabase();
  const client = new ScramClient(url);
  await client.connect();
  expect((await client.query<{ one: number }>('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await client.end();
});
