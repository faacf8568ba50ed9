/**
 * @processes
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findFreePort, spawnGuarded } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import { request } from 'undici';
import { type DevProgram, runDevProgram } from './dev-program';

let folder: string;
let url: string;
let said: string[];
let states: (string | null)[];
let program: DevProgram;

const write = (name: string, text: string): void => fs.writeFileSync(path.join(folder, name), text);
const answer = async (): Promise<string> => (await request(url)).body.text();
const hasSaid = (line: string): Promise<unknown> =>
  until(() => said.includes(line), { what: `"${line}" in ${said.join('\n')}` });

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-dev-program-'));
  const port = await findFreePort();
  url = `http://127.0.0.1:${port}`;
  write('answer.js', "module.exports = 'one';");
  write(
    'server.js',
    `const text = require('./answer.js');
    require('node:http').createServer((_request, response) => response.end(text)).listen(${port}, '127.0.0.1');`,
  );
  said = [];
  states = [];
  const start = () =>
    spawnGuarded(process.execPath, [path.join(folder, 'server.js')], {
      stdio: ['ignore', 'inherit', 'pipe'],
      signalOnOrphan: 'SIGTERM',
    });
  program = runDevProgram({
    name: 'keys',
    start,
    url,
    say: (line) => said.push(line),
    onState: (reason) => states.push(reason),
  });
  program.restart();
  await until(() => said.length > 0, { what: 'the first start' });
});
afterEach(async () => {
  await program.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

test('it says that it listens when it answers, and not before', async () => {
  expect(said).toEqual([`keys listens on ${url}; npm run dev:call GET /healthz asks it`]);
  expect(await answer()).toBe('one');
});

test('code that does not start is told with its reason, and the next good code is served', async () => {
  write('answer.js', "throw new Error('keys does not mount helloSite');");
  program.restart();
  await hasSaid('keys is down: keys does not mount helloSite; waiting for a change');
  program.restart();
  await until(() => said.filter((line) => line.includes('is down')).length === 2, { what: 'still down' });
  write('answer.js', "module.exports = 'two';");
  program.restart();
  expect(await until(answer, { what: 'the mended code' })).toBe('two');
});

test('a program that ends by itself is told, and an end that we asked for is not', async () => {
  program.restart();
  program.restart();
  await until(() => said.length > 1, { what: 'the second start' });
  expect(said.filter((line) => line.includes('down'))).toEqual([]);
  write('answer.js', 'process.exit(3);');
  program.restart();
  await hasSaid('keys is down: it ended with code 3; waiting for a change');
  expect([states[0], states.at(-1)]).toEqual([null, 'it ended with code 3']);
});
