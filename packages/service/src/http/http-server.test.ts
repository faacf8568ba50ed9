import { spawn } from 'node:child_process';
import fs from 'node:fs';
import type { Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { closeServer, createHttpServer, listen } from './http-server';

let folder: string;
let server: Server;
let port: number;
beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-http-'));
  server = createHttpServer((request, response) => {
    request.resume().once('end', () => response.end('answered'));
  });
  server.headersTimeout = 200;
  server.requestTimeout = 400;
  ({ port } = await listen(server, 0));
});
afterEach(async () => {
  server.closeAllConnections();
  await closeServer(server);
  fs.rmSync(folder, { recursive: true });
});

const blockFor = (milliseconds: number): unknown =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

/**
 * Sends each text over its own connection, from another process. This process is blocked until the kernel has all
 * texts, and again before it reads any of them. Resolves with the first line of each answer.
 */
async function answersTo(texts: readonly string[]): Promise<string[]> {
  const sent = path.join(folder, 'sent');
  const client = spawn(process.execPath, ['-e', clientScript, String(port), sent, ...texts], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // This is longer than both time-outs and than the pause between Node's checks, so that a check is due before anything
  // is read.
  server.once('connection', () => blockFor(1_300));
  while (!fs.existsSync(sent)) blockFor(10);
  return JSON.parse(await text(client.stdout));
}

const clientScript = `
  const [port, sent, ...texts] = process.argv.slice(1);
  const { once } = require('node:events');
  const answerOn = async (socket) => {
    let answer = '';
    for await (const piece of socket) {
      answer += piece;
      if (answer.includes('answered')) break;
    }
    return answer.split('\\r\\n')[0];
  };
  (async () => {
    const answers = [];
    for (const text of texts) {
      const socket = require('node:net').connect(Number(port), '127.0.0.1');
      await once(socket, 'connect');
      await new Promise((resolve) => socket.write(text, resolve));
      answers.push(answerOn(socket));
    }
    require('node:fs').writeFileSync(sent, '');
    console.log(JSON.stringify(await Promise.all(answers)));
  })();`;

test('a request that arrived in time is answered even if it is read late, and an incomplete request is 408', async () => {
  const [head, ofBody] = [
    'GET / HTTP/1.1\r\nHost: a\r\n',
    (bytes: number) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n{}`,
  ];
  expect(await answersTo([ofBody(2), head, ofBody(20)])).toEqual([
    'HTTP/1.1 200 OK',
    'HTTP/1.1 408 Request Timeout',
    'HTTP/1.1 408 Request Timeout',
  ]);
});

it('a thousand clients can connect while the process is busy', async () => {
  const somaxconn = Number(fs.readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  const count = Math.min(1_000, somaxconn);
  const connected = path.join(folder, 'connected');
  spawn(process.execPath, ['-e', crowdScript, String(port), connected, String(count)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  while (!fs.existsSync(connected)) blockFor(10);
  expect(Number(fs.readFileSync(connected, 'utf8'))).toBe(count);
});

/** Opens many connections. Writes the number of open connections once all are open, or after 20 s. */
const crowdScript = `
  const [port, connected, count] = process.argv.slice(1);
  let made = 0;
  const tell = () => {
    require('fs').writeFileSync(connected + '.part', String(made));
    require('fs').renameSync(connected + '.part', connected);
    process.exit();
  };
  setTimeout(tell, 20000);
  for (let n = 0; n < Number(count); n += 1)
    require('net').connect(Number(port), '127.0.0.1', () => { made += 1; if (made === Number(count)) tell(); }).on('error', () => {});
`;
