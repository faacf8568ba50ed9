import { once } from 'node:events';
import net from 'node:net';
import { DatabaseAddress } from './database-address';
import { listenStubbornly, PortAllocator } from './ports';
import { readFirstPacket, writeStartup } from './startup-packet';

const offer = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const startup = writeStartup(196_608, new Map([['user', 'somebody']]));

let port: number;
const came: string[] = [];
const address = new DatabaseAddress<{ user: string | undefined }>(
  (data) => {
    const first = readFirstPacket(data);
    if (first.kind === 'encryption') return 'decline_encryption';
    if (first.kind === 'startup') return { user: first.parameters.get('user') };
    return first.kind === 'incomplete' ? 'incomplete' : 'invalid';
  },
  (client, { user }) => {
    came.push(user ?? '');
    client.end('welcome');
  },
);
beforeAll(async () => {
  port = await new PortAllocator('127.0.0.1').allocate();
  await listenStubbornly(address.server, port, '127.0.0.1', 0);
});
afterAll(() => address.close());
beforeEach(() => {
  came.length = 0;
});

function connect(): { socket: net.Socket; told: Promise<string> } {
  const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
  const parts: Buffer[] = [];
  socket.on('data', (part: Buffer) => parts.push(part));
  return { socket, told: once(socket, 'close').then(() => Buffer.concat(parts).toString()) };
}

test('a client whose offer of encryption is declined goes on without it, however its bytes are split', async () => {
  const { socket, told } = connect();
  socket.write(offer.subarray(0, 3));
  socket.write(offer.subarray(3));
  expect(String((await once(socket, 'data'))[0])).toBe('N');
  for (const byte of startup) socket.write(Buffer.from([byte]));
  expect(await told).toBe('Nwelcome');
  expect(came).toEqual(['somebody']);
});

test('a client that goes on before the answer to its offer of encryption is disconnected, not admitted', async () => {
  const { socket, told } = connect();
  socket.write(Buffer.concat([offer, startup]));
  expect(await told).toBe('');
  expect(came).toEqual([]);
});

test('of six hundred silent clients the oldest are disconnected, and a new client is admitted', async () => {
  const silent = Array.from({ length: 600 }, () => connect());
  await Promise.all(silent.map(({ socket }) => once(socket, 'connect')));
  const { socket, told } = connect();
  socket.write(startup);
  expect(await told).toBe('welcome');
  await Promise.all(silent.slice(0, 200).map((client) => client.told));
  for (const client of silent) client.socket.destroy();
});

test('a silent client is disconnected after three seconds', async () => {
  const { DRYDOCK_TIMEOUT_SCALE: scale } = process.env;
  process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
  const { socket, told } = connect();
  await once(socket, 'connect');
  expect(await told).toBe('');
  process.env['DRYDOCK_TIMEOUT_SCALE'] = scale;
});

test('closing ends every connection', async () => {
  let admit = (): void => undefined;
  const admitted = new Promise<void>((resolve) => {
    admit = resolve;
  });
  const closing = new DatabaseAddress(
    () => ({}),
    () => admit(),
  );
  const closingPort = await new PortAllocator('127.0.0.1').allocate();
  await listenStubbornly(closing.server, closingPort, '127.0.0.1', 0);
  const socket = net.connect(closingPort, '127.0.0.1').on('error', () => undefined);
  const closed = once(socket, 'close');
  socket.resume().write('anything');
  await admitted;
  await closing.close();
  await closed;
  expect(socket.destroyed).toBe(true);
});
