import type { ChildProcess } from 'node:child_process';
import { Server } from 'node:net';

/** The descriptor over which the program below hands over its sockets; the box's command never has it. */
export const handOverFd = 8;
/** Ports below this are for root only, even in a network of one's own, so nothing in a box can take them. */
export const privilegedPorts = 1_024;

/**
 * Runs in the box's network while the box is being made, with rights that the command does not get. It listens at the
 * ports in its arguments and hands each listening socket over. A socket stays in the network where it was opened, so
 * the process that gets it accepts the box's connections without being in that network.
 */
export const handOverSource = `
const net = require('node:net');
const fail = (error) => { process.stderr.write(error.message); process.exit(1); };
(async () => {
  for (const port of process.argv.slice(1).map(Number)) {
    const server = net.createServer();
    await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
    await new Promise((resolve, reject) =>
      process.send({ port }, server, (error) => (error ? reject(error) : resolve())));
  }
  process.disconnect();
  process.exit(0);
})().catch(fail);
`;

/** The listeners in a box's network, by port. */
export type BoxListeners = ReadonlyMap<number, Server>;

/**
 * Resolves when every port has its listener. It never resolves if the box does not start. The listeners are closed when
 * the box ends.
 */
export function takeListeners(child: ChildProcess, ports: readonly number[]): Promise<BoxListeners> {
  const taken = new Map<number, Server>();
  return new Promise((resolve) => {
    if (ports.length === 0) resolve(taken);
    child.on('message', ({ port }: { port: number }, handle: unknown) => {
      if (handle instanceof Server) taken.set(port, handle);
      if (taken.size === ports.length) resolve(taken);
    });
    child.once('exit', () => {
      for (const server of taken.values()) server.close();
    });
  });
}
