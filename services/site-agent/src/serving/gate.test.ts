import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { newSiteId } from '../../test/host';
import { SiteFolder } from '../on-disk/site-folder';
import { Gate } from './gate';

let sitesDir: string;
let folder: SiteFolder;
const gates: Gate[] = [];
beforeEach(async () => {
  sitesDir = await mkdtemp(path.join(os.tmpdir(), 'drydock-gate-'));
  folder = new SiteFolder(sitesDir, 'live', newSiteId());
  await mkdir(folder.root, { recursive: true });
});
afterEach(async () => {
  for (const gate of gates.splice(0)) gate.close();
  await rm(sitesDir, { recursive: true });
});

/** Returns the gate of a newly started process. */
async function started(): Promise<Gate> {
  const gate = new Gate(folder);
  gates.push(gate);
  await gate.resume();
  return gate;
}

test('a process that starts after one that died during a freeze is frozen, until it is thawed', async () => {
  await (await started()).freeze(60_000);
  const next = await started();
  expect(next.isFrozen).toBe(true);
  await next.thaw();
  expect([next.isFrozen, (await started()).isFrozen]).toEqual([false, false]);
});

test('a process that is closed during a freeze leaves the freeze to the next process', async () => {
  const first = await started();
  await first.freeze(60_000);
  first.close();
  expect((await started()).isFrozen).toBe(true);
});

test('several starts begin the time of a freeze once more, and only once', async () => {
  await (await started()).freeze(60_000);
  const before = Date.now();
  expect((await started()).isFrozen).toBe(true);
  const kept = await folder.readFreeze();
  expect(Date.parse(kept?.ends_at ?? '')).toBeGreaterThanOrEqual(before + 60_000);
  expect((await started()).isFrozen).toBe(true);
  expect(await folder.readFreeze()).toEqual(kept);
  await folder.writeFreeze({ ttl_ms: 60_000, ends_at: new Date(before - 1).toISOString() });
  expect([(await started()).isFrozen, await folder.readFreeze()]).toEqual([false, null]);
});

test('a clock that was set back makes a freeze no longer than its time', async () => {
  await folder.writeFreeze({ ttl_ms: 200, ends_at: new Date(Date.now() + 86_400_000).toISOString() });
  const gate = await started();
  expect(gate.isFrozen).toBe(true);
  await gate.pass(new AbortController().signal);
  expect(gate.isFrozen).toBe(false);
});

test('the record of a freeze goes when its time is over, unless another freeze has begun meanwhile', async () => {
  const gate = await started();
  await gate.freeze(50);
  await gate.pass(new AbortController().signal);
  await gate.freeze(60_000);
  expect(await folder.readFreeze()).toEqual({ ttl_ms: 60_000, ends_at: null });
  await gate.freeze(50);
  await until(async () => (await folder.readFreeze()) === null, { what: 'the end of the record' });
});
