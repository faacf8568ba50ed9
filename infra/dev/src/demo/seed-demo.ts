import { apiOf } from './api';
import { type Demo, demoSchema, type PartialDemo, readDemo, writeDemo, writePartial } from './demo-file';
import type { DemoTools } from './demo-tools';
import type { Seed, SeedContext } from './seed';
import { agencySeed } from './seed-agency';
import { appSeed } from './seed-app';
import { computeSeed } from './seed-compute';
import { databasesSeed } from './seed-databases';
import { deletedSitesSeed } from './seed-deleted-sites';
import { keysSeed } from './seed-keys';
import { offsiteSeed } from './seed-offsite';
import { sitesSeed } from './seed-sites';
import { vendorSeed } from './seed-vendor';

export interface DemoContext extends DemoTools {
  dataDir: string;
  baseUrl: string;
  processesFile: string;
  /**
   * `sites` creates only keys and sites, for tests that need nothing else. The `whole` demo takes a minute on a busy
   * machine.
   */
  extent: 'whole' | 'sites';
  say(line: string): void;
}

/** The seeds that run together after {@link keysSeed}, because they call the API with its keys. */
const laterSeeds: readonly Seed[] = [
  sitesSeed,
  appSeed,
  offsiteSeed,
  vendorSeed,
  deletedSitesSeed,
  computeSeed,
  agencySeed,
  databasesSeed,
];

/**
 * Creates the parts of the demo content that are missing or that could not be created at the last start, and writes
 * demo.json.
 */
export async function seedDemo({ dataDir, baseUrl, processesFile, extent, say, ...means }: DemoContext): Promise<Demo> {
  const { unfinished = [], ...made } = readDemo(dataDir);
  const demo: PartialDemo = { ...made, base_url: baseUrl, processes_file: processesFile };
  const context: SeedContext = {
    ...means,
    demo,
    keep: (more) => {
      Object.assign(demo, more);
      writePartial(dataDir, demo);
    },
    api: (key) => {
      const token = demo[key];
      if (token === undefined) throw new Error(`${key} has not been minted yet`);
      return apiOf(baseUrl, token);
    },
  };
  const run = async ({ title, fields, seed }: Seed): Promise<void> => {
    if (fields.every((field) => demo[field] !== undefined) && !unfinished.some((part) => part.title === title)) return;
    say(title);
    await seed(context);
  };
  await run(keysSeed);
  const failed = await runAll(extent === 'whole' ? laterSeeds : [sitesSeed], run);
  for (const { title, problem } of failed) say(`${title}: ${problem}`);
  const whole = demoSchema.parse({ sites: [], ...demo, ...(failed.length === 0 ? {} : { unfinished: failed }) });
  writeDemo(dataDir, whole);
  return whole;
}

/**
 * Runs all seeds at the same time. A failed seed does not end the others. Resolves with the failed seeds and their
 * problems.
 */
async function runAll(
  seeds: readonly Seed[],
  run: (seed: Seed) => Promise<void>,
): Promise<NonNullable<Demo['unfinished']>> {
  const ended = await Promise.allSettled(seeds.map(run));
  return ended.flatMap((end, index) =>
    end.status === 'fulfilled'
      ? []
      : [
          {
            title: seeds[index]?.title ?? '',
            problem: end.reason instanceof Error ? end.reason.message : String(end.reason),
          },
        ],
  );
}
