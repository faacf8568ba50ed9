import { once } from 'node:events';
import net from 'node:net';
import { findFreePort, startOnFreePort } from './free-port';

const listen = async (port: number): Promise<net.Server> => {
  const server = net.createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
};

test('a server whose port was taken starts on another port', async () => {
  const [other, tried] = [await listen(await findFreePort()), [] as number[]];
  const { port: taken } = other.address() as net.AddressInfo;
  const server = await startOnFreePort(undefined, (port) => {
    tried.push(port);
    return listen(tried.length === 1 ? taken : port).catch((error: unknown) => {
      throw new Error('Postgres did not start:\ncould not bind: Address already in use', { cause: error });
    });
  });
  expect((server.address() as net.AddressInfo).port).toBe(tried[1]);
  server.close();
  other.close();
});

test('another failure is not retried, a chosen port is tried once, and there are at most five starts', async () => {
  const tried: number[] = [];
  const failWith = (reason: string) => (port: number) => {
    tried.push(port);
    return Promise.reject(new Error(reason));
  };
  await expect(startOnFreePort(undefined, failWith('no such setting'))).rejects.toThrow('no such setting');
  expect(tried).toHaveLength(1);
  await expect(startOnFreePort(7, failWith('address already in use'))).rejects.toThrow('in use');
  expect(tried.slice(1)).toEqual([7]);
  await expect(startOnFreePort(undefined, failWith('address already in use'))).rejects.toThrow('in use');
  expect(tried.slice(2)).toHaveLength(5);
});
