import type { ChildProcess } from 'node:child_process';
import { Server } from 'node:net';

/** The descriptor over which the program below passes its sockets. The box's command does not get this descriptor. */
export const handOverFd = 8;
/**
 * A port below this number needs a privilege. No process in a box has this privilege, not even in the box's own
 * network.
 */
export const privilegedPorts = 1_024;

/**
 * The source of a program that runs in the box's network while the box is created, before rights are dropped. The
 * program listens on the ports in its arguments and passes each listening socket on. A socket stays in the network in
 * which it was created. So the receiver, which is outside of the box, accepts connections from inside the box.
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
 * Resolves when every port has a listener, and never if the box does not start. The listeners close when the box ends.
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
