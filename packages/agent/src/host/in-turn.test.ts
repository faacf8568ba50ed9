import { once } from 'node:events';
import net from 'node:net';
import { hearUntil } from './in-turn';

let server: net.Server;
let client: net.Socket;
let heard: net.Socket;
beforeEach(async () => {
  server = net.createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  client = net.connect(address.port, '127.0.0.1');
  [heard] = await once(server, 'connection');
  for (const socket of [client, heard]) socket.on('error', () => undefined);
});
afterEach(() => {
  for (const socket of [client, heard]) socket.destroy();
  server.close();
});

const hear = (): Promise<string> => hearUntil(heard, '\n', 100, (go) => go());

test('the text before the end is heard, and what follows it stays in the socket', async () => {
  client.end('question\nrest');
  expect(await hear()).toBe('question');
  heard.setEncoding('latin1');
  expect((await heard.toArray()).join('')).toBe('rest');
});

test.each([
  ['ends', () => client.end('quest')],
  ['is closed by the other side', () => client.resetAndDestroy()],
  ['is closed by this side', () => heard.destroy()],
])('a socket that %s before the end of the text is reported', async (_how, act) => {
  const hearing = hear();
  act();
  await expect(hearing).rejects.toThrow('the socket ended too early');
});

test('a text that is too long is refused', async () => {
  client.write('x'.repeat(101));
  await expect(hear()).rejects.toThrow('no end within 100 bytes');
});
