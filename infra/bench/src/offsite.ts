import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestStack } from '@drydock/testing/stack';
import { request } from 'undici';
import { z } from 'zod';
import { isInstalled, median, timeCommand } from './measure';
import { printRows, type Row, say } from './report';
import { Restic } from './restic';
import { startBenchStack } from './stack';
import { makeTree } from './tree';
import { freshTargets, withWorkspace } from './workspace';

const files = 20_000;
const rounds = 5;
/** Every hundredth file changes between two copies. */
const changedEvery = 100;

const storageSchema = z.object({
  endpoint: z.string(),
  region: z.string(),
  bucket: z.string(),
  access_key_id: z.string(),
  secret_access_key: z.string(),
});
const workflowSchema = z.looseObject({
  status: z.string(),
  created_at: z.iso.datetime(),
  finished_at: z.iso.datetime().nullable(),
  steps: z.array(z.looseObject({ name: z.string(), finished_at: z.iso.datetime().nullable() })),
});
type Workflow = z.infer<typeof workflowSchema>;
const backupsSchema = z.looseObject({ backups: z.array(z.looseObject({ id: z.string() })) });
const copiesSchema = z.looseObject({ copies: z.array(z.looseObject({ id: z.string() })) });

interface Site {
  base: string;
  token: string;
  path: string;
  filesDir: string;
}

async function call({ base, token }: Site, method: 'GET' | 'POST' | 'PUT', target: string, body?: object) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await request(base + target, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${method} ${target} answered ${answer.statusCode} ${text}`);
  return { json: JSON.parse(text) as unknown, location: String(answer.headers['location'] ?? '') };
}

/** Starts a workflow on the site and waits until it has succeeded. `rest` is the end of the request's path. */
async function carry(site: Site, rest: string, body: object): Promise<Workflow> {
  const { location } = await call(site, 'POST', site.path + rest, body);
  for (;;) {
    const workflow = workflowSchema.parse((await call(site, 'GET', location)).json);
    if (workflow.status === 'succeeded') return workflow;
    if (workflow.status !== 'queued' && workflow.status !== 'running')
      throw new Error(`${rest} ended as ${JSON.stringify(workflow)}`);
    await sleep(250);
  }
}

const secondsBetween = (from: string, to: string | null | undefined): number =>
  (Date.parse(to ?? '') - Date.parse(from)) / 1000;

/** Returns the seconds from acceptance to the end of the step `thaw`, after which visitors see the restored site. */
const secondsUntilLive = ({ created_at: from, steps }: Workflow): number =>
  secondsBetween(from, steps.find(({ name }) => name === 'thaw')?.finished_at);

/** Prints the seconds of each step, which show where the time goes. */
function sayStages(what: string, { created_at: from, steps }: Workflow): void {
  let before = from;
  const parts = steps.map(({ name, finished_at: at }) => {
    const seconds = secondsBetween(before, at);
    before = at ?? before;
    return `${name} ${seconds.toFixed(2)}`;
  });
  say(`  ${what}: ${parts.join(', ')}`);
}

function changeSome(tree: string, round: number): void {
  for (let number = 0; number < files; number += changedEvery) {
    const folder = path.join(tree, `d${Math.floor(number / 10_000)}`, `s${Math.floor(number / 100)}`);
    fs.appendFileSync(path.join(folder, `f${number}.dat`), `changed in round ${round}\n`);
  }
}

async function openSite(stack: TestStack): Promise<Site> {
  const [shop] = stack.demo.sites;
  if (shop === undefined) throw new Error('the demo has no site');
  const site = {
    base: stack.demo.base_url,
    token: stack.demo.live_key,
    path: `/v1/sites/${shop.id}`,
    filesDir: shop.files_dir,
  };
  await call(site, 'PUT', `${site.path}/offsite`, {
    ...storageSchema.parse(stack.demo['customer_storage']),
    prefix: 'bench',
  });
  return site;
}

interface Measured {
  increment: number[];
  resticSecond: number[];
  local: number[];
  offsite: number[];
  restic: number[];
  resticCached: number[];
}

const treeOf = (site: Site): string => path.join(site.filesDir, 'bench');
const seconds = (values: readonly number[]): string => `${values.at(-1)?.toFixed(2)} s`;

async function measureCopies(site: Site, restic: Restic, { increment, resticSecond }: Measured): Promise<void> {
  await carry(site, '/offsite/copies', { kind: 'full' });
  await restic.run(['init']);
  await restic.run(['backup', '.'], treeOf(site));
  for (let round = 0; round < rounds; round += 1) {
    changeSome(treeOf(site), round);
    const copied = await carry(site, '/offsite/copies', { kind: 'incremental' });
    increment.push(secondsBetween(copied.created_at, copied.finished_at));
    resticSecond.push(await restic.run(['backup', '.'], treeOf(site)));
    say(`round ${round + 1}: increment ${seconds(increment)}, restic ${seconds(resticSecond)}`);
  }
}

async function measureRestores(site: Site, repository: Restic, folder: string, measured: Measured): Promise<void> {
  const { local, offsite, restic, resticCached } = measured;
  await carry(site, '/backups', {});
  await carry(site, '/offsite/copies', { kind: 'full' });
  const [backup] = backupsSchema.parse((await call(site, 'GET', `${site.path}/backups`)).json).backups;
  const [copy] = copiesSchema.parse((await call(site, 'GET', `${site.path}/offsite`)).json).copies;
  // The disk is synced before each measurement, so that it does not include the writes of the previous measurement.
  const syncDisk = () => timeCommand({ bin: 'sync', args: ['-f', folder] });
  for (let round = 0; round < rounds; round += 1) {
    await syncDisk();
    const fromBackup = await carry(site, '/backups/restore', { backup_id: backup?.id });
    await syncDisk();
    const fromCopy = await carry(site, '/offsite/restore', { copy_id: copy?.id });
    sayStages('local', fromBackup);
    sayStages('offsite', fromCopy);
    local.push(secondsUntilLive(fromBackup));
    offsite.push(secondsUntilLive(fromCopy));
    await syncDisk();
    resticCached.push(await repository.restore(['restore', 'latest'], path.join(folder, `cached-${round}`)));
    await syncDisk();
    restic.push(await repository.restore(['--no-cache', 'restore', 'latest'], path.join(folder, `uncached-${round}`)));
    const peers = `restic ${seconds(restic)}, with its cache ${seconds(resticCached)}`;
    say(`round ${round + 1}: local ${seconds(local)}, offsite ${seconds(offsite)}, ${peers}`);
  }
}

function rowsOf(measured: Measured, size: string): Row[] {
  const { increment, resticSecond, local, offsite, restic, resticCached } = measured;
  const row = (what: string, ours: readonly number[], peer: string, theirs: readonly number[], bar?: number): Row => ({
    what,
    ours: `${median(ours).toFixed(2)} s`,
    peer,
    peerValue: `${median(theirs).toFixed(2)} s`,
    ratio: median(theirs) / median(ours),
    ...(bar === undefined ? {} : { bar }),
  });
  const restore = `offsite restore of a site with ${size}, until it is live`;
  return [
    row(restore, offsite, 'restore of a local backup', local, 0.8),
    row(restore, offsite, 'restic restore of its files from the same server', restic, 2),
    row(restore, offsite, 'the same with the cache of the machine that made the copies', resticCached),
    row(
      'incremental offsite copy with 1 % changed, read back',
      increment,
      "restic's second run, with its cache",
      resticSecond,
      1,
    ),
  ];
}

/** Compares copies and restores of a whole Drydock with those of restic, in the same S3 storage. */
export const benchOffsite = (): Promise<void> =>
  withWorkspace('offsite', async (folder) => {
    if (!(await isInstalled('restic'))) return say('restic is not installed: left out');
    // The data folder is on a new file system where possible, because ext4 creates files more slowly soon after a mass
    // delete.
    const targets = await freshTargets(folder);
    fs.chmodSync(folder, 0o711);
    const home = await targets.fresh();
    fs.mkdirSync(home);
    const stack = await startBenchStack({ dataDir: home });
    const measured: Measured = {
      increment: [],
      resticSecond: [],
      local: [],
      offsite: [],
      restic: [],
      resticCached: [],
    };
    try {
      const site = await openSite(stack);
      const bytes = makeTree(treeOf(site), files);
      const restic = new Restic(storageSchema.parse(stack.demo['customer_storage']), home);
      await measureCopies(site, restic, measured);
      await measureRestores(site, restic, home, measured);
      printRows(
        'Offsite',
        rowsOf(measured, `${files} files, ${Math.round(bytes / 1e6)} MB, and its database`),
        `Through the whole of Drydock: accepted by the gateway, done by the worker, on ${targets.kind}. Ours has nothing of the copy at hand and restores the database as well; all until what they restored is safe on disk. Median of ${rounds}.`,
      );
    } finally {
      await stack.stop();
      await targets.close();
    }
  });
