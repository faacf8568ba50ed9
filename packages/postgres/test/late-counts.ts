import net from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

const copyDone = Buffer.from([0x63, 0, 0, 0, 4]);
const lateMs = 30;

/**
 * Opens a proxy to Postgres that delays the message with a COPY's number of rows, which follows the last row. Without a
 * proxy, the message is late only if Postgres' send buffer is full at that point.
 */
export async function throughLateCounts(url: string): Promise<{ url: string; close(): Promise<void> }> {
  const { hostname: host, port } = new URL(url);
  const sockets = new Set<net.Socket>();
  const server = net.createServer((client) => {
    const upstream = net.connect({ host, port: Number(port) });
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client.setNoDelay(true), upstream]) {
      sockets.add(socket);
      socket.on('error', end).on('close', end);
    }
    client.pipe(upstream);
    upstream.pipe(splitting()).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const through = new URL(url);
  through.host = `127.0.0.1:${address.port}`;
  const close = (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return { url: through.href, close };
}

const splitting = (): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const splitAndSend = async (): Promise<void> => {
        let rest = chunk;
        for (let at = rest.indexOf(copyDone); at >= 0; at = rest.indexOf(copyDone)) {
          this.push(rest.subarray(0, at + copyDone.length));
          rest = rest.subarray(at + copyDone.length);
          await sleep(lateMs);
        }
        if (rest.length > 0) this.push(rest);
      };
      splitAndSend().then(() => done(), done);
    },
  });
