import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { writeJsonAtomically } from '../data-folder';

const demoServerSchema = z.object({
  id: z.string(),
  snapshot_ids: z.array(z.string()),
  unready_snapshot_id: z.string(),
  disk_url: z.string(),
  disk_token: z.string(),
});

/** The content of demo.json, in which people and programs find the addresses, keys and ids of the demo. */
export const demoSchema = z.object({
  base_url: z.string(),
  org_id: z.string(),
  child_org_id: z.string(),
  live_key: z.string(),
  sandbox_key: z.string(),
  staff_key: z.string(),
  other_org_key: z.string(),
  sites: z.array(z.object({ id: z.string(), url: z.string(), files_dir: z.string(), database_url: z.string() })),
  // The fields below, except `processes_file` and `unfinished`, are missing if the demo has only keys and sites
  // (DRYDOCK_DEMO=sites).
  app_site_id: z.string().optional(),
  /** A site with a full copy and two increments in the bucket that `customer_storage` names. */
  offsite_site_id: z.string().optional(),
  customer_storage: z
    .object({
      endpoint: z.string(),
      region: z.string(),
      bucket: z.string(),
      access_key_id: z.string(),
      secret_access_key: z.string(),
    })
    .optional(),
  /** A hosting package at a vendor, with restore points of its website, database and mailbox. */
  vendor_site_id: z.string().optional(),
  /** The ids of deleted sites. Each name says in which state the deleted site is. */
  deleted_sites: z
    .object({
      restorable: z.string(),
      already_restored: z.string(),
      purged: z.string(),
      abuse_hold: z.string(),
      no_backup: z.string(),
      domain_in_use: z.string(),
    })
    .optional(),
  /** Servers at the emulator of Hetzner. Each has two ready snapshots and one that never becomes ready. */
  servers: z.array(demoServerSchema).optional(),
  sandbox_servers: z.array(demoServerSchema).optional(),
  /** A board with three columns, labels and cards. Some cards are in the archive. */
  boards: z
    .array(
      z.object({
        id: z.string(),
        column_ids: z.array(z.string()),
        card_ids: z.array(z.string()),
        archived_card_ids: z.array(z.string()),
      }),
    )
    .optional(),
  /**
   * The first database has data and a backup. The second was never backed up. `url` has the owner's login and requires
   * TLS.
   */
  databases: z.array(z.object({ id: z.string(), url: z.string() })).optional(),
  processes_file: z.string(),
  /**
   * The parts that could not be created, and why. The next start tries to create them again. The field is absent when
   * all parts exist.
   */
  unfinished: z.array(z.object({ title: z.string(), problem: z.string() })).optional(),
});
export type Demo = z.infer<typeof demoSchema>;
const partialSchema = demoSchema.partial();
/** The fields of demo.json that exist so far. */
export type PartialDemo = z.infer<typeof partialSchema>;

const fileOf = (dataDir: string): string => path.join(dataDir, 'demo.json');
const partialFileOf = (dataDir: string): string => path.join(dataDir, 'demo.partial.json');

const readPart = (file: string): PartialDemo =>
  fs.existsSync(file) ? partialSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8'))) : {};

/** Reads the fields of demo.json and of an unfinished demo. Any field can be missing. */
export const readDemo = (dataDir: string): PartialDemo => ({
  ...readPart(fileOf(dataDir)),
  ...readPart(partialFileOf(dataDir)),
});

/** Saves an unfinished demo. The API shows a token only once, so a token must be saved before anything can crash. */
export const writePartial = (dataDir: string, demo: PartialDemo): void =>
  writeJsonAtomically(partialFileOf(dataDir), demo);

export function writeDemo(dataDir: string, demo: Demo): void {
  writeJsonAtomically(fileOf(dataDir), demo);
  fs.rmSync(partialFileOf(dataDir), { force: true });
}
