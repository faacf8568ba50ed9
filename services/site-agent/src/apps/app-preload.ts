/**
 * This code runs in a customer's process before the customer's own code. As under Passenger, the first server that the
 * application opens serves the site, whatever port it asks for. The server gets a Unix socket instead of the port,
 * because another process could take a port. The code reports on descriptor 3 when the server listens.
 */
const source = `
import net from 'node:net';
import fs from 'node:fs';
const listen = net.Server.prototype.listen;
const path = process.env.DRYDOCK_APP_SOCKET;
delete process.env.DRYDOCK_APP_SOCKET;
// A process that the application forks runs this too, but is not the application.
let isFirst = path !== undefined;
net.Server.prototype.listen = function (...args) {
  if (!isFirst) return listen.apply(this, args);
  isFirst = false;
  this.once('listening', () => {
    fs.writeSync(3, 'listening\\n');
    fs.closeSync(3);
  });
  return listen.call(this, { path }, args.find((argument) => typeof argument === 'function'));
};
`;

/**
 * The URL for Node's `--import`. It contains the code, because a site's account may not be able to read the agent's
 * files.
 */
export const appPreloadUrl = `data:text/javascript,${encodeURIComponent(source)}`;
