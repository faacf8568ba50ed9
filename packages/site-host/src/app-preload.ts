/**
 * Runs in a customer's process before its own code. As under Passenger, the first server that the application opens is the application, whatever
 * port it asks for: it gets a free one on loopback and tells it by descriptor 3.
 */
const source = `
import net from 'node:net';
import fs from 'node:fs';
const listen = net.Server.prototype.listen;
let isFirst = true;
net.Server.prototype.listen = function (...args) {
  if (!isFirst) return listen.apply(this, args);
  isFirst = false;
  this.once('listening', () => {
    fs.writeSync(3, this.address().port + '\\n');
    fs.closeSync(3);
  });
  return listen.call(this, { port: 0, host: '127.0.0.1' }, args.find((argument) => typeof argument === 'function'));
};
`;

/** For Node's `--import`: in the URL itself, since a site's account may not be able to read our files. */
export const appPreloadUrl = `data:text/javascript,${encodeURIComponent(source)}`;
