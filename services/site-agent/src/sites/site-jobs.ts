import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { type AnyJobKind, type JobContext, jobKind, runChildJob } from '@drydock/agent/jobs';
import {
  countRowsResultSchema,
  countRowsSpecSchema,
  type PackSpec,
  type ProgramSetup,
  packResultSchema,
  packSpecSchema,
  type StageSpec,
  stageResultSchema,
  stageSpecSchema,
} from '@drydock/agent/site';
import type { z } from 'zod';
import { databaseIn, filesPathIn, startSiteProgram } from '../releases/site-box';
import type { Site } from './site';

const program = 'sites/site-job.program.js';

/**
 * The kinds of jobs on a site's content. Each job runs in a child, in the site's box where boxes can be made. `siteOf`
 * throws for a site that does not exist.
 */
export function siteJobKinds(siteOf: (siteId: string) => Site): Record<string, AnyJobKind> {
  return {
    /** Packs files and database of one release into one archive, while the site goes on serving. */
    pack: jobKind({
      spec: packSpecSchema,
      hasChannel: true,
      lock: () => null,
      organisation: ({ origin }) => origin.organisation_id,
      run: (context) => pack(siteOf(context.thingId), context),
    }),
    /** Makes a new release beside the live release. It counts as a release once all its content is on disk. */
    stage: jobKind({
      spec: stageSpecSchema,
      hasChannel: true,
      lock: ({ release_id }) => `release ${release_id}`,
      organisation: ({ origin }) => origin.organisation_id,
      run: (context) => stage(siteOf(context.thingId), context),
    }),
    count_rows: jobKind({
      spec: countRowsSpecSchema,
      hasChannel: false,
      lock: () => null,
      organisation: () => null,
      run: (context) => {
        const site = siteOf(context.thingId);
        const setup: ProgramSetup = { work: 'count_rows', spec: context.spec, database: { url: site.currentUrl() } };
        return runIn(site, { setup, files: null, socketFolder: null, result: countRowsResultSchema }, context);
      },
    }),
  };
}

async function pack(site: Site, context: JobContext<PackSpec>): Promise<z.infer<typeof packResultSchema>> {
  const { spec } = context;
  await site.learnOrganisation(spec.origin.organisation_id);
  const { filesDir, reader } = await site.openForReading(spec.release_id);
  try {
    const { isolation } = site;
    const { socketFolder } = reader;
    const setup: ProgramSetup = {
      work: 'pack',
      spec,
      files_dir: filesPathIn(isolation, filesDir),
      releases_dir: await realpath(path.join(filesDir, '../..')),
      database: databaseIn(isolation, reader),
    };
    const files = { dir: filesDir, writable: false };
    return await runIn(site, { setup, files, socketFolder, result: packResultSchema }, context);
  } finally {
    reader.close();
  }
}

async function stage(site: Site, context: JobContext<StageSpec>): Promise<z.infer<typeof stageResultSchema>> {
  const { spec } = context;
  const release = await site.prepareRelease(spec.release_id, spec.contents ?? 'all', context.signal);
  try {
    const { isolation } = site;
    const { loader } = release;
    const database = loader && databaseIn(isolation, loader);
    const socketFolder = loader?.socketFolder ?? null;
    const setup: ProgramSetup = { work: 'stage', spec, files_dir: filesPathIn(isolation, release.filesDir), database };
    const files = { dir: release.filesDir, writable: true };
    const result = await runIn(site, { setup, files, socketFolder, result: stageResultSchema }, context);
    context.signal.throwIfAborted();
    if (result.lost.count > 0)
      site.log.warn(
        { release_id: spec.release_id, lost: result.lost.count, such_as: result.lost.paths[0] },
        'restored without a part of what paths had',
      );
    await release.publish();
    return result;
  } catch (error) {
    await release.discard();
    throw error;
  }
}

interface SiteWork<Result> {
  setup: ProgramSetup;
  files: { dir: string; writable: boolean } | null;
  /** The folder of the database's socket, which the job's box shows. */
  socketFolder: string | null;
  result: z.ZodType<Result>;
}

function runIn<Result>(
  site: Site,
  { setup, files, socketFolder, result }: SiteWork<Result>,
  context: JobContext<unknown>,
): Promise<Result> {
  const { channel, signal, progress } = context;
  const { isolation } = site;
  const { uid } = site.record;
  return runChildJob({
    start: async (stdio) => {
      const child = await startSiteProgram({ isolation, uid, program, files, socketFolder }, stdio);
      site.watch(child, 'job');
      return child;
    },
    setup,
    channel,
    signal,
    progress,
    result,
  });
}
