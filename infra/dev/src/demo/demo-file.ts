import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { writeJsonAtomically } from '../write-file-atomically';

/** What `npm start` leaves for people and programs to begin with. Later domains add their ids. */
export const demoSchema = z.strictObject({
  base_url: z.string(),
  org_id: z.string(),
  child_org_id: z.string(),
  live_key: z.string(),
  sandbox_key: z.string(),
  staff_key: z.string(),
  other_org_key: z.string(),
  sites: z.array(z.strictObject({ id: z.string(), url: z.string(), files_dir: z.string(), database_url: z.string() })),
  processes_file: z.string(),
});
export type Demo = z.infer<typeof demoSchema>;
const partialSchema = demoSchema.partial();
/** As far as it has been made. */
export type PartialDemo = z.infer<typeof partialSchema>;

const fileOf = (dataDir: string): string => path.join(dataDir, 'demo.json');
const partialFileOf = (dataDir: string): string => path.join(dataDir, 'demo.partial.json');

/** null when the demo has not been made, or not to its end. */
export function readDemo(dataDir: string): Demo | null {
  if (!fs.existsSync(fileOf(dataDir))) return null;
  return demoSchema.parse(JSON.parse(fs.readFileSync(fileOf(dataDir), 'utf8')));
}

/** Tokens are shown once, so each is kept the moment it is minted: a crash half-way loses none. */
export function readPartial(dataDir: string): PartialDemo {
  if (!fs.existsSync(partialFileOf(dataDir))) return {};
  return partialSchema.parse(JSON.parse(fs.readFileSync(partialFileOf(dataDir), 'utf8')));
}

export const writePartial = (dataDir: string, demo: PartialDemo): void => writeJsonAtomically(partialFileOf(dataDir), demo);

export function writeDemo(dataDir: string, demo: Demo): void {
  writeJsonAtomically(fileOf(dataDir), demo);
  fs.rmSync(partialFileOf(dataDir), { force: true });
}
