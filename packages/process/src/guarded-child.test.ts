/** @processes */
import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSameProcess, proveProcess } from './end-process';
import { spawnGuarded } from './guarded-child';

const parentScript = `
const { spawnGuarded } = require(${JSON.stringify(require.resolve('../dist/guarded-child.js'))});
spawnGuarded('sleep', ['60'], { stdio: 'ignore', signalOnOrphan: 'SIGTERM' }).then((child) => {
  console.log(child.proof.pid);
  setInterval(() => undefined, 1000);
});`;

test('a child ends when its parent is killed with -9', async () => {
  const parent = spawn(process.execPath, ['-e', parentScript], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line]: unknown[] = await once(parent.stdout, 'data');
  const proof = proveProcess(Number(String(line)));
  if (proof === null) throw new Error('the child is not there');
  parent.kill('SIGKILL');
  const until = performance.now() + 5000;
  while (isSameProcess(proof) && performance.now() < until) await sleep(20);
  expect(isSameProcess(proof)).toBe(false);
});

test('a child that ignores the signal is killed after the grace period', async () => {
  const child = await spawnGuarded('/bin/sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    signalOnOrphan: 'SIGKILL',
  });
  if (child.process.stdout) await once(child.process.stdout, 'data');
  await child.stop('SIGTERM', 100);
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a process that a wrapper started ends with the wrapper', async () => {
  const wrapper = await spawnGuarded('/bin/sh', ['-c', 'sleep 60 & echo $!; wait'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    signalOnOrphan: 'SIGTERM',
    isWrapper: true,
  });
  const [line]: unknown[] = wrapper.process.stdout ? await once(wrapper.process.stdout, 'data') : [];
  const inner = proveProcess(Number(String(line)));
  await wrapper.stop('SIGTERM', 1000);
  const untilMs = performance.now() + 2000;
  while (inner !== null && isSameProcess(inner) && performance.now() < untilMs) await sleep(20);
  expect(inner !== null && isSameProcess(inner)).toBe(false);
});

test('a child with a memory limit is killed before any other process if the machine has no memory left', async () => {
  const look = ['-c', 'cat /proc/self/oom_score_adj'];
  const stdio: StdioOptions = ['ignore', 'pipe', 'ignore'];
  const child = await spawnGuarded('/bin/sh', look, { stdio, signalOnOrphan: 'SIGKILL', memoryBytes: 2 ** 29 });
  const [line]: unknown[] = child.process.stdout ? await once(child.process.stdout, 'data') : [];
  expect(Number(line)).toBe(1000);
});

test('a process is not recognised by its pid alone', () => {
  const proof = proveProcess(process.pid);
  if (proof === null) throw new Error('we are not there');
  expect(isSameProcess(proof)).toBe(true);
  expect(isSameProcess(proof, ['no such argument'])).toBe(false);
  expect(isSameProcess({ ...proof, startedTicks: '1' })).toBe(false);
});
