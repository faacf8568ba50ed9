import { apiOf } from './api';
import { type Demo, demoSchema, readDemo, writeDemo, writePartial } from './demo-file';
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
  /** The gateway's base URL. */
  baseUrl: string;
  processesFile: string;
  /** `sites`: keys and sites alone, for tests of those on a busy machine. */
  extent: 'whole' | 'sites';
  /** One line for the terminal. */
  say(line: string): void;
}

/** Keys come first: the others are made with them, as a customer would make them, side by side. */
const laterSeeds: readonly Seed[] = [sitesSeed, appSeed, offsiteSeed, vendorSeed, deletedSitesSeed, computeSeed, agencySeed, databasesSeed];

/** Makes what is missing of the demo content, and brings its addresses up to date. */
export async function seedDemo({ dataDir, baseUrl, processesFile, extent, say, ...means }: DemoContext): Promise<Demo> {
  const demo = { ...readDemo(dataDir), base_url: baseUrl, processes_file: processesFile };
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
    if (fields.every((field) => demo[field] !== undefined)) return;
    say(title);
    await seed(context);
  };
  await run(keysSeed);
  await Promise.all((extent === 'whole' ? laterSeeds : [sitesSeed]).map(run));
  const whole = demoSchema.parse(demo);
  writeDemo(dataDir, whole);
  return whole;
}
