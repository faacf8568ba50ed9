import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { HostError } from '../control/control-protocol';
import { Changes, Ledger } from './changes';

let folder: string;
let changes: Changes;
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-changes-'));
  changes = new Changes(new Ledger(folder, 'box', () => new Date('2026-11-21T12:00:00Z')));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('changes of one thing come one after the other, and those of another thing do not wait for them', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const order: string[] = [];
  const run = (id: string, op: string, work: () => Promise<void>) =>
    changes.run(id, { op }, { fence: '1' }, async () => async () => {
      order.push(`${op} begins`);
      await work();
      order.push(`${op} ends`);
    });
  const first = run('a', 'first', () => held);
  const second = run('a', 'second', async () => undefined);
  await run('b', 'other', async () => undefined);
  expect(order).toEqual(['first begins', 'other begins', 'other ends']);
  release();
  await changes.settle();
  await Promise.all([first, second]);
  expect(order.slice(3)).toEqual(['first ends', 'second begins', 'second ends']);
});

test('each change, accepted or refused, has a ledger line before its work; no failure blocks the next', async () => {
  const lines = async (): Promise<unknown[]> =>
    (await readFile(path.join(folder, 'ledger.ndjson'), 'utf8'))
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
  const refused = changes.run('a', { op: 'put', detail: 'x' }, { fence: '1', workflow_id: 'w1' }, () =>
    Promise.reject(new HostError('stale_fence', 'old')),
  );
  const failed = changes.run('a', { op: 'put', detail: 'x' }, { fence: '2' }, async () => async () => {
    expect(await lines()).toHaveLength(2);
    throw new Error('half-way');
  });
  const done = changes.run(
    'a',
    { op: 'put', detail: 'x' },
    { fence: '3', workflow_id: 'w3' },
    async () => async () => 'done',
  );
  await expect(refused).rejects.toMatchObject({ code: 'stale_fence' });
  await expect(failed).rejects.toThrow('half-way');
  expect(await done).toBe('done');
  const line = { time: '2026-11-21T12:00:00.000Z', box: 'a', op: 'put', detail: 'x', digest: expect.any(String) };
  expect(await lines()).toEqual([
    { ...line, fence: '1', workflow_id: 'w1', outcome: 'refused' },
    { ...line, fence: '2', workflow_id: null, outcome: 'accepted' },
    { ...line, fence: '3', workflow_id: 'w3', outcome: 'accepted' },
  ]);
});
