import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasonOf } from '../../test/memory-archive';
import { describeTree, freshFolder, key, type PackedLink, packDirectory, removeFolders } from '../../test/trees';
import { extract } from './extract';
import { endThread, restThread, takeThread } from './extract-workers';

afterAll(removeFolders);

/** Packs a site whose files contain the site's name, so that two sites can be told apart. */
async function packSite(name: string): Promise<{ folder: string; link: PackedLink }> {
  const folder = join(freshFolder(), name);
  mkdirSync(folder);
  for (let number = 0; number < 300; number += 1) writeFileSync(join(folder, `file-${number}`), `${name} ${number}`);
  return { folder, link: await packDirectory(folder) };
}

async function extractSite({ link }: { link: PackedLink }): Promise<string> {
  const target = join(freshFolder(), 'target');
  await extract({ chain: [link], key, roots: { files: target } });
  return target;
}

test('extractions in sequence and in parallel each give their own archive, also after a refused one', async () => {
  const sites = await Promise.all(['first', 'second', 'third'].map(packSite));
  const [first] = sites;
  if (first === undefined) throw new Error('no site');
  await extractSite(first);
  const altered = {
    ...first.link,
    source: first.link.source.with('segment-00000000', (bytes) => bytes.fill(0, 100, 110)),
  };
  expect(await reasonOf(extractSite({ link: altered }))).toBe('tampered');
  for (const round of [sites, sites.slice().reverse()]) {
    const targets = await Promise.all(round.map(extractSite));
    expect(targets.map(describeTree)).toEqual(round.map(({ folder }) => describeTree(folder)));
  }
});

test('an aborted extraction writes nothing any more, even if its threads still wait for an object', async () => {
  const [aborted, next] = [await packSite('aborted'), await packSite('next')];
  const target = join(freshFolder(), 'target');
  const stop = new AbortController();
  const read = aborted.link.source.read.bind(aborted.link.source);
  let letGo = (): void => undefined;
  const isFree = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  aborted.link.source.read = async (name) => {
    if (!name.startsWith('segment')) return read(name);
    stop.abort(new Error('enough'));
    await isFree;
    return read(name);
  };
  const extraction = extract({ chain: [aborted.link], key, roots: { files: target }, signal: stop.signal });
  await expect(extraction).rejects.toThrow('enough');
  const left = describeTree(target);
  letGo();
  expect(describeTree(await extractSite(next))).toEqual(describeTree(next.folder));
  expect(describeTree(target)).toEqual(left);
});

test('an extraction that is aborted while it checks the archive writes nothing any more', async () => {
  const { link } = await packSite('aborted');
  const roots = { files: join(freshFolder(), 'target'), more: join(freshFolder(), 'more') };
  const stop = new AbortController();
  const read = link.source.read.bind(link.source);
  let letGo = (): void => undefined;
  const isFree = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  link.source.read = async (name) => {
    if (!name.startsWith('index')) return read(name);
    stop.abort(new Error('enough'));
    await isFree;
    return read(name);
  };
  await expect(extract({ chain: [link], key, roots, signal: stop.signal })).rejects.toThrow('enough');
  const left = Object.values(roots).map(describeTree);
  letGo();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(Object.values(roots).map(describeTree)).toEqual(left);
});

test('the next extraction reuses an idle thread, and at most two idle threads are kept', async () => {
  const [first, second, third] = [takeThread(), takeThread(), takeThread()];
  for (const thread of [first, second, third]) restThread(thread);
  expect(takeThread() === second).toBe(true);
  await endThread(first);
  const fresh = takeThread();
  expect([first, second, third].includes(fresh)).toBe(false);
  for (const thread of [second, fresh]) await endThread(thread);
});

test('idle threads do not keep a process alive', () => {
  const script = `
    const { restThread, takeThread } = require(${JSON.stringify(join(__dirname, '../../dist/extract/extract-workers.js'))});
    const thread = takeThread();
    thread.once('online', () => { restThread(thread); console.log('at rest'); });`;
  const { status, stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', timeout: 60_000 });
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'at rest\n' });
});
