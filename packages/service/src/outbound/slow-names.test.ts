/**
 * @processes
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describeWith } from '@drydock/testing/skipped';

/**
 * Runs a program in a network of its own and with its own /etc/resolv.conf, because that file is where the program
 * finds its name servers.
 */
const ownNames = [
  'unshare',
  '--user',
  '--map-root-user',
  '--net',
  '--mount',
  '/bin/sh',
  '-c',
  'ip link set lo up && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"',
  'own-names',
] as const;
const isPossible = spawnSync(ownNames[0], [...ownNames.slice(1), '/dev/null', 'true']).status === 0;

/**
 * A program that is both a name server and its client. The server never answers for a name with `slow` in it, and gives
 * every other name an address to which this network has no route. The client requests all names at once. It prints each
 * name, with the code of its error, when the request of that name ends.
 */
const program = `
const { createSocket } = require('node:dgram');
const https = require('node:https');
const { createGuardedAgents } = require('./packages/service/dist/outbound/guarded-agent.js');
const server = createSocket('udp4');
server.on('message', (query, { port, address }) => {
  if (query.includes('slow')) return;
  const isV4 = query.readUInt16BE(query.indexOf(0, 12) + 1) === 1;
  const question = query.subarray(12, query.indexOf(0, 12) + 5);
  const header = Buffer.from([query[0], query[1], 0x81, 0x80, 0, 1, 0, isV4 ? 1 : 0, 0, 0, 0, 0]);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 114, 1]);
  server.send(Buffer.concat([header, question, ...(isV4 ? [record] : [])]), port, address);
});
const ask = (name) => {
  const origin = 'https://' + name;
  const { httpsAgent } = createGuardedAgents({ origin, allowed: new Set() });
  https.get(origin, { agent: httpsAgent }).on('error', ({ code }) => process.stdout.write(name + ' ' + code + '\\n'));
};
server.bind(53, '127.0.0.1', () => {
  for (let number = 0; number < 8; number += 1) ask('n' + number + '.slow.example');
  ask('good.example');
});
server.unref();
`;

describeWith(isPossible ? '' : 'user and network namespaces')('customers’ names', () => {
  test('a name is looked up at once while other names get no answer from their servers', async () => {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-names-'));
    const servers = path.join(folder, 'resolv.conf');
    await writeFile(servers, 'nameserver 127.0.0.1\n');
    const child = spawn(ownNames[0], [...ownNames.slice(1), servers, process.execPath, '-e', program], {
      cwd: path.resolve(__dirname, '../../../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [ended] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    await rm(folder, { recursive: true });
    const lines = ended.trim().split('\n');
    expect(lines[0]).toBe('good.example ENETUNREACH');
    expect(lines.slice(1).sort()).toEqual(Array.from({ length: 8 }, (_, n) => `n${n}.slow.example EAI_AGAIN`));
  });
});
