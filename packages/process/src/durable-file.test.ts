import { mkdtemp, readdir, readlink, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createDurably, isLeftover, pointDurably, readIfThere, writeDurably } from './durable-file';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-durable-'));
  file = path.join(folder, 'record.json');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('if several create the same file, one succeeds and its text is complete', async () => {
  const texts = Array.from({ length: 20 }, (_, number) => `${number}\n`.repeat(1_000));
  const made = await Promise.all(texts.map((text) => createDurably(file, text)));
  expect(made.filter(Boolean)).toHaveLength(1);
  expect(await readIfThere(file)).toBe(texts[made.indexOf(true)]);
  expect(await createDurably(file, 'late')).toBe(false);
  expect(await readdir(folder)).toEqual(['record.json']);
});

test('a reader sees the old or the new text while a file is replaced, and only the owner may read it', async () => {
  const [old, next] = ['old'.repeat(100_000), 'next'.repeat(100_000)];
  await writeDurably(file, old);
  let isWriting = true;
  const read = async (): Promise<Set<string | null>> => {
    const seen = new Set<string | null>();
    while (isWriting) seen.add(await readIfThere(file));
    return seen;
  };
  const reading = read();
  for (const text of [next, old, next, old, next]) await writeDurably(file, text);
  isWriting = false;
  expect([...(await reading)].filter((text) => text !== old && text !== next)).toEqual([]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readIfThere(path.join(folder, 'nothing'))).toBeNull();
});

test('a crash before the rename leaves the pointer as it was, and its leftover is recognised', async () => {
  const pointer = path.join(folder, 'current');
  await pointDurably(pointer, 'a', () => undefined);
  const crash = (): never => {
    throw new Error('killed');
  };
  await expect(pointDurably(pointer, 'b', crash)).rejects.toThrow('killed');
  expect(await readlink(pointer)).toBe('a');
  expect((await readdir(folder)).filter((name) => !isLeftover(name))).toEqual(['current']);
  await pointDurably(pointer, 'b', () => undefined);
  expect(await readlink(pointer)).toBe('b');
});
