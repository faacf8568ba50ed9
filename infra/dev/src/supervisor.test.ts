/**
 * @processes
 */
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isSameProcess, spawnGuarded } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import { claimDataFolder, openProcessTable } from './data-folder';
import { openChildLog } from './managed-process';
import { createSupervisor, type ManagedProcess, type Running, type Supervisor } from './supervisor';

let dataDir: string;
let said: string[];
/**
 * The pauses for which the supervisor has asked, in milliseconds. The fifth pause lasts until the supervisor is closed,
 * so that a test sees exactly five.
 */
let pauses: number[];
let supervisor: Supervisor;
const say = (line: string): void => void said.push(line);

beforeEach(() => {
  dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-supervisor-'));
  said = [];
  pauses = [];
  supervisor = createSupervisor(openProcessTable(dataDir), say, async (ms, signal) => {
    pauses.push(ms);
    if (pauses.length >= 5 && !signal.aborted) await once(signal, 'abort');
  });
});

afterEach(async () => {
  supervisor.close();
  await supervisor.stop(['sleeper', 'dying']);
  fs.rmSync(dataDir, { recursive: true, force: true });
});

function managed(name: string, script: string): ManagedProcess {
  const start = async (): Promise<Running> => {
    const child = await spawnGuarded('/bin/sh', ['-c', script], { stdio: 'ignore', signalOnOrphan: 'SIGKILL' });
    return {
      port: 1234,
      proof: child.proof,
      program: script,
      exited: child.exited,
      stop: () => child.stop('SIGTERM', 500),
    };
  };
  return { name, start };
}

const table = (): Record<string, { pid: number; port: number }> =>
  JSON.parse(fs.readFileSync(path.join(dataDir, 'processes.json'), 'utf8'));

test('a killed process is started again at once, and the table says so', async () => {
  const { proof } = await supervisor.keepRunning(managed('sleeper', 'sleep 60'));
  expect(table()).toEqual({ sleeper: { pid: proof.pid, port: 1234 } });
  process.kill(proof.pid, 'SIGKILL');
  await until(() => table()['sleeper'] !== undefined && table()['sleeper']?.pid !== proof.pid);
  expect(pauses).toEqual([]);
  expect(supervisor.deathsOf('sleeper')).toBe(1);
});

test('on a full disk a killed process is still started again, and a log that cannot be written throws nothing', async () => {
  const sleeper = managed('sleeper', 'sleep 60');
  const started: Running[] = [];
  const start = async (): Promise<Running> => {
    const running = await sleeper.start();
    started.push(running);
    return running;
  };
  const { proof } = await supervisor.keepRunning({ name: 'sleeper', start });
  fs.rmSync(dataDir, { recursive: true });
  process.kill(proof.pid, 'SIGKILL');
  const again = await until(() => started[1]);
  expect(said.join('\n')).toMatch(/The table of processes cannot be written: .*ENOENT/);
  fs.mkdirSync(dataDir);
  process.kill(again.proof.pid, 'SIGKILL');
  await until(() => table()['sleeper'] !== undefined);
  fs.symlinkSync('/dev/full', path.join(dataDir, 'sleeper.log'));
  expect(() => openChildLog(dataDir, 'sleeper').write('words')).not.toThrow();
});

test('a process that keeps dying is started with growing pauses', async () => {
  await supervisor.keepRunning(managed('dying', 'exit 3'));
  await until(() => pauses.length === 5);
  expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000]);
  expect(supervisor.deathsOf('dying')).toBe(6);
  expect(said).toContainEqual(expect.stringMatching(/^dying \(pid \d+\) ended with code 3; starting it again$/));
});

test('a stopped process stays stopped and out of the table', async () => {
  const { proof } = await supervisor.keepRunning(managed('sleeper', 'sleep 60'));
  await supervisor.stop(['sleeper']);
  expect(isSameProcess(proof)).toBe(false);
  expect(table()).toEqual({});
});

test('a leftover of an earlier run is ended, a stranger with its pid is not', async () => {
  const leftover = await managed('sleeper', 'sleep 61; true').start();
  const stranger = await managed('sleeper', 'sleep 62; true').start();
  const noted = {
    hosting: { ...leftover.proof, program: 'sleep 61' },
    keys: { ...stranger.proof, startedTicks: '1', program: 'sleep 62' },
    gateway: { ...stranger.proof, program: 'services/gateway/dist/server.js' },
  };
  fs.writeFileSync(path.join(dataDir, 'proofs.json'), JSON.stringify(noted));
  await claimDataFolder(dataDir, say);
  expect(isSameProcess(leftover.proof)).toBe(false);
  expect(isSameProcess(stranger.proof)).toBe(true);
  await stranger.stop();
});

test('a data folder on which another supervisor works is refused', async () => {
  const other = await managed('sleeper', 'sleep 63').start();
  fs.writeFileSync(path.join(dataDir, 'supervisor.json'), JSON.stringify(other.proof));
  await expect(claimDataFolder(dataDir, say)).rejects.toThrow(`already runs on ${dataDir} (pid ${other.proof.pid})`);
  await other.stop();
});

test('of two starts at the same moment one is refused, though neither has found the other', async () => {
  const other = await managed('sleeper', 'sleep 63').start();
  const claiming = claimDataFolder(dataDir, say);
  fs.writeFileSync(path.join(dataDir, 'supervisor.json'), JSON.stringify(other.proof));
  await expect(claiming).rejects.toThrow(`already runs on ${dataDir} (pid ${other.proof.pid})`);
  await other.stop();
});
