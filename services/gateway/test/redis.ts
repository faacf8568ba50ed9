import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import net from 'node:net';
import { waitFor } from './wait-for';

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export interface TestRedis {
  url: string;
  signal(signal: NodeJS.Signals): void;
  stop(): void;
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))));
    });
  });

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** A Redis of its own, with nothing on disk; on a given port to come back where another one was. */
export async function startRedis(port?: number): Promise<TestRedis & { port: number }> {
  const chosen = port ?? (await freePort());
  const child: ChildProcess = spawn('redis-server', ['--port', String(chosen), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
    stdio: 'ignore',
  });
  await waitFor(() => accepts(chosen));
  return { url: `redis://127.0.0.1:${chosen}`, port: chosen, signal: (signal) => child.kill(signal), stop: () => child.kill('SIGKILL') };
}
