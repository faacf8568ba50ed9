import { archiveRoots } from '@drydock/agent/site';
import {
  ArchiveError,
  type ArchiveLink,
  completeLimits,
  openArchive,
  openEntries,
  type RootKey,
  readBlocks,
  textOfBytes,
} from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';
import { manifestSchema as mysqlManifestSchema } from '@drydock/mysql';
import { manifestSchema as postgresManifestSchema, readJson, sectionPaths } from '@drydock/postgres';
import { fencedCall, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { movingLimits } from '../backups/archive.steps';
import { hasSpace, neededBytes } from '../backups/backup.rules';
import { isDrillDue, type RestoreDrillReason } from '../backups/proof.rules';
import { defineWorkflow, type WorkContext } from '../context/context';
import { hostOf, SiteHostError, type SiteRef } from '../providers/site-host';
import { failedOf, noAnswer, type RecordedAnswer } from '../sites/probe.rules';
import { platformOrgId } from '../sites/site.types';
import { chooseBackup, type DrillChoice, readProofs, recordProof } from './proof.store';

/** Samples of a backup's content. The drill compares the restored site with them. */
interface Sentinels {
  /** The path under which a file is requested, and the SHA-256 of its content in hex. */
  files: Array<{ path: string; sha256: string }>;
  tables: Array<{ schema: string; name: string; rows: number }>;
}

/**
 * How many samples of each kind are kept: enough to notice the content of another site, and few enough to check within
 * seconds.
 */
const sentinelsMax = 8;

/** Larger files are not sampled. The restore itself compares their hashes. */
const bytesMax = 2 ** 20;

/** A site with this file is an application, which answers every request itself, so its files cannot be requested. */
const appEntry = 'app.js';

/**
 * Whether the host serves the file unchanged. The host runs the SQL queries in HTML pages, and does not serve hidden
 * files.
 */
function isServedAsItIs({ type, path, size }: { type: string; path: string; size: number }): boolean {
  const isPlain = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/.test(path);
  return type === 'file' && size > 0 && size <= bytesMax && isPlain && !/\.(?:html?|php\d?|phtml|cgi)$/i.test(path);
}

/**
 * Reservoir sampling: keeps `max` items of a stream of unknown length, each with the same probability. `random` returns
 * a number from 0 to 1, but never 1.
 */
function createSample<Item>(max: number, random: () => number): { offer(item: Item): void; items: Item[] } {
  const items: Item[] = [];
  let offered = 0;
  return {
    items,
    offer: (item) => {
      offered += 1;
      if (items.length < max) items.push(item);
      else {
        const at = Math.floor(random() * offered);
        if (at < max) items[at] = item;
      }
    },
  };
}

type Step = StepContext<unknown, unknown>;

/** The site that is made for one drill. Its id is that of the workflow. */
const drillSiteOf = ({ workflowId, mode }: { workflowId: string; mode: Mode }): SiteRef => ({
  siteId: workflowId,
  orgId: platformOrgId,
  mode,
});

/**
 * Stages and switches like a customer's restore. The result is `restore_failed` if the host has too little room or
 * refuses permanently. Any other error is thrown, so that the step is tried again.
 */
async function restoreOnDrillSite(
  context: WorkContext,
  step: Step,
  { backupId, origin, archive, database }: DrillChoice,
): Promise<'' | 'restore_failed'> {
  const host = hostOf(context.siteHosts, 'local');
  const site = drillSiteOf(step);
  const call = fencedCall(step);
  const source = context.backupStorage.source(archive.storageKey);
  const toStage = { source, archiveId: backupId, manifestMac: archive.manifestMac, origin };
  try {
    const wanted = { domain: `drill-${site.siteId}.invalid`, database };
    const { currentRelease: from, freeBytes } = await host.create(site, wanted, call);
    const to = `drill-${step.fence}`;
    if (from === to) return '';
    const needed = neededBytes(archive);
    // The drill must not fill the disk, which customers' sites use too.
    if (!hasSpace(needed, freeBytes)) return refused(step, backupId, `${needed} bytes needed, ${freeBytes} free`);
    await host.stage(site, to, toStage, { ...call, progress: step.progress });
    await host.switchRelease(site, { from, to }, call);
    await host.thaw(site, call);
    return '';
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return refused(step, backupId, String(error));
  }
}

function refused(step: Step, backupId: string, internal: string): 'restore_failed' {
  step.log.error({ backup_id: backupId, internal, alarm: 'restore_drill_failed' }, 'a restore drill was refused');
  return 'restore_failed';
}

/**
 * Whether the error is a permanent refusal. `stale_fence` is none: it only says that a newer attempt has taken over.
 */
const isRefusal = (error: unknown): boolean =>
  error instanceof ArchiveError
    ? error.reason !== 'source_unreadable'
    : error instanceof SiteHostError && error.refusal !== 'stale_fence';

/** Destroys the site of the drill. It is no error if the site was never made. */
async function clearDrillSite(context: WorkContext, step: Step): Promise<void> {
  const site = drillSiteOf(step);
  await context.siteHosts.local?.destroy(site, fencedCall(step));
}

/**
 * Returns null for an error that shows a faulty or missing archive. Throws any other error, because it may be
 * transient.
 */
function asUnavailable(error: unknown): null {
  if (error instanceof ArchiveError && error.reason !== 'source_unreadable') return null;
  throw error;
}

/** Compares the samples with the restored site, which must not answer worse than when the backup was taken. */
async function compareRestored(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  { files, tables }: Sentinels,
  answer: RecordedAnswer,
): Promise<'' | 'probe_failed' | 'content_mismatch' | 'no_drill_site'> {
  const { siteHosts, drillProbe } = context;
  if (drillProbe === null) return 'no_drill_site';
  const site = drillSiteOf(step);
  const probe = await hostOf(siteHosts, 'local').probe(site, fencedCall(step));
  if (failedOf(probe, answer).length > 0) return 'probe_failed';
  for (const { path, sha256 } of files) {
    if ((await drillProbe.hashServed(site, path, step.signal)) !== sha256) return differs(step, { path });
  }
  for (const { rows, ...table } of tables) {
    if ((await drillProbe.countRows(site, table, fencedCall(step))) !== rows)
      return differs(step, { table: table.name });
  }
  return '';
}

function differs(step: StepContext<unknown, unknown>, what: object): 'content_mismatch' {
  step.log.error({ ...what, alarm: 'restore_drill_failed' }, 'a restored site is not what was backed up');
  return 'content_mismatch';
}

/** The manifest of a dump of Postgres or of MySQL. Dumps of both engines have the manifest under the same path. */
const manifestSchema = z.union([postgresManifestSchema, mysqlManifestSchema]);

/**
 * Takes samples from an archive: hashes of some files and the row counts of some tables. The MACs of the archive seal
 * these facts, so they show the site as it was packed.
 * @throws ArchiveError, TransferError
 */
export async function recordSentinels(link: ArchiveLink, key: RootKey, signal: AbortSignal): Promise<Sentinels> {
  return { files: await sampleFiles(link, key, signal), tables: await sampleTables(link, key, signal) };
}

async function sampleFiles(link: ArchiveLink, key: RootKey, signal: AbortSignal): Promise<Sentinels['files']> {
  const archive = await openArchive(link, key, completeLimits());
  const sample = createSample<Sentinels['files'][number]>(sentinelsMax, Math.random);
  let isApp = false;
  for await (const { block } of readBlocks(archive, archiveRoots.files, signal)) {
    for (const entry of block.entries) {
      const path = textOfBytes(entry.path);
      if (path === appEntry) isApp = true;
      if (isServedAsItIs({ type: entry.type, path, size: entry.size }))
        sample.offer({ path: `/${path}`, sha256: entry.sha256.toString('hex') });
    }
  }
  return isApp ? [] : sample.items;
}

async function sampleTables(link: ArchiveLink, key: RootKey, signal: AbortSignal): Promise<Sentinels['tables']> {
  const sample = createSample<Sentinels['tables'][number]>(sentinelsMax, Math.random);
  for await (const section of openEntries({ chain: [link], key, root: archiveRoots.database, signal })) {
    if (section.path !== sectionPaths.manifest) continue;
    const { tables } = await readJson({ path: section.path, content: section.content() }, manifestSchema);
    for (const { schema, name, rows } of tables) sample.offer({ schema, name, rows });
  }
  return sample.items;
}

/** `not_due` is not recorded, because no drill took place. */
type Reason = Exclude<RestoreDrillReason, ''> | 'not_due';
const failed = (reason: Reason) => ({ reason, found: null });
const found = <T>(value: T) => ({ reason: '' as const, found: value });

/** A drill that takes longer counts as failed, because no customer would wait so long for a restore. */
const drillSeconds = 6 * 3_600;

/**
 * Restores a backup onto a site that is made for this drill, and compares samples of the content. The site is removed
 * at the end, so that no customer's data stays on it. If a step finds a reason why the drill has not passed, the steps
 * up to `clear` only pass that reason on.
 */
export const restoreDrillWorkflow = defineWorkflow({
  kind: 'restore_drill',
  /** The workflow does nothing if the last drill has passed and is younger than `passedAgeMinDays` days. */
  input: z.strictObject({ passedAgeMinDays: z.number().min(0) }),
})
  .step('choose', {
    run: async ({ mode, input }, context) => {
      const { database, siteHosts, drillProbe, now } = context;
      const { drill } = await readProofs(database.pool, mode, context.backupStorage.placeIn(mode));
      if (!isDrillDue(drill, input.passedAgeMinDays, now())) return failed('not_due');
      if (siteHosts.local === undefined || drillProbe === null) return failed('no_drill_site');
      const choice = await chooseBackup(database.pool, mode, now());
      return choice === null ? failed('no_recent_backup') : found({ ...choice, startedAt: now().toISOString() });
    },
  })
  .step('record_sentinels', {
    ...movingLimits,
    run: async (step, context) => {
      const { choose } = step.outputs;
      if (choose.found === null) return choose;
      const { backupId, origin, archive } = choose.found;
      const expected = { archiveId: backupId, ...origin, manifestMac: archive.manifestMac };
      const link = { source: context.backupStorage.source(archive.storageKey), expected };
      const sentinels = await recordSentinels(link, context.archiveKey, step.signal).catch(asUnavailable);
      return sentinels === null ? failed('canary_unavailable') : found(sentinels);
    },
  })
  .step('restore', {
    ...movingLimits,
    weight: 10,
    run: async (step, context) => {
      const { choose, record_sentinels: sentinels } = step.outputs;
      if (choose.found === null || sentinels.found === null) return { reason: sentinels.reason };
      return { reason: await restoreOnDrillSite(context, step, choose.found) };
    },
    undo: (step, context) => clearDrillSite(context, step),
  })
  .step('compare', {
    run: async (step, context) => {
      const { choose, record_sentinels: sentinels, restore } = step.outputs;
      if (restore.reason !== '' || choose.found === null || sentinels.found === null) return { reason: restore.reason };
      const tookMs = context.now().getTime() - Date.parse(choose.found.startedAt);
      if (tookMs > drillSeconds * 1_000) return { reason: 'timed_out' as const };
      return { reason: await compareRestored(context, step, sentinels.found, choose.found.answer ?? noAnswer) };
    },
  })
  .step('clear', {
    run: async (step, context) => {
      await clearDrillSite(context, step);
      return { finishedAt: context.now().toISOString() };
    },
    commit: (tx, { outputs, mode, workflowId }, { finishedAt }, context) => {
      const { choose, compare } = outputs;
      if (compare.reason === 'not_due') return Promise.resolve();
      const proof = { kind: 'restore_drill', mode, place: context.backupStorage.placeIn(mode), workflowId } as const;
      const backupId = choose.found?.backupId ?? null;
      return recordProof(tx, { ...proof, reason: compare.reason, backupId, finishedAt: new Date(finishedAt) });
    },
  })
  .onEnd({
    failed: (tx, { mode, workflowId }, _problem, context) => {
      const proof = { kind: 'restore_drill', mode, place: context.backupStorage.placeIn(mode), workflowId } as const;
      return recordProof(tx, { ...proof, reason: 'restore_failed', backupId: null, finishedAt: context.now() });
    },
  })
  .build();
