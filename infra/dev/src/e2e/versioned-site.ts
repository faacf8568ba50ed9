import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fingerprintDatabase } from '@drydock/postgres';
import pg from 'pg';

export interface Place {
  url: string;
  files_dir: string;
  database_url: string;
}

export interface Size {
  files: number;
  bytes: number;
  rows: number;
}

/**
 * The size of a realistic site for the chaos run, and a smaller size for other runs. In both sizes the database is
 * larger than the 1 MB that an archive compresses at a time.
 */
export const sizes = {
  full: { files: 20_000, bytes: 200e6, rows: 100_000 },
  short: { files: 2_000, bytes: 20e6, rows: 60_000 },
} as const;

async function sql(place: Place, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: place.database_url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Writes the version into a page and into a row. The page shows both, for example `old/old`. */
export async function writeVersion(place: Place, version: string): Promise<void> {
  await sql(
    place,
    `CREATE TABLE IF NOT EXISTS version (v text); DELETE FROM version; INSERT INTO version VALUES ('${version}')`,
  );
  const file = path.join(place.files_dir, 'version.html');
  fs.writeFileSync(`${file}.next`, `${version}/<?sql select v from version ?>`);
  fs.renameSync(`${file}.next`, file);
}

export async function fillSite(place: Place, { files, bytes, rows }: Size): Promise<void> {
  const content = Buffer.alloc(Math.floor(bytes / files), 'Everything in its place, and a place for everything. ');
  for (let number = 0; number < files; number += 1) {
    const folder = path.join(place.files_dir, `d${Math.floor(number / 100)}`);
    if (number % 100 === 0) fs.mkdirSync(folder, { recursive: true });
    content.writeUInt32LE(number);
    fs.writeFileSync(path.join(folder, `f${number}.txt`), content);
  }
  await sql(
    place,
    `CREATE TABLE items (id int PRIMARY KEY, name text); INSERT INTO items SELECT i, md5(i::text) FROM generate_series(1, ${rows}) i`,
  );
}

export async function disturbSite(place: Place): Promise<void> {
  fs.writeFileSync(path.join(place.files_dir, 'd0', 'f0.txt'), 'changed');
  fs.writeFileSync(path.join(place.files_dir, 'd0', 'made-later.txt'), 'later');
  await sql(place, `DELETE FROM items WHERE id < 100; CREATE TABLE IF NOT EXISTS made_later (id int)`);
}

/** Returns a digest of all paths with their modes and contents, and a digest of the database. */
export async function digestSite(place: Place): Promise<{ tree: string; database: string }> {
  const root = fs.realpathSync(place.files_dir);
  const hash = createHash('sha256');
  for (const name of fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()) {
    const stat = fs.lstatSync(path.join(root, name));
    hash.update(`${name}\0${stat.mode}\0`);
    if (stat.isFile()) hash.update(fs.readFileSync(path.join(root, name)));
  }
  return { tree: hash.digest('hex'), database: (await fingerprintDatabase({ url: place.database_url })).digest };
}

export interface Samples {
  /** The distinct bodies of successful reads. */
  bodies: Set<string>;
  /** The distinct statuses and errors of failed reads. */
  failures: Set<string>;
  /** The longest time between two successful reads, in milliseconds. */
  longestGapMs: number;
  stop(): Promise<void>;
}

/**
 * Reads a page every 20 ms until `stop`. Reads do not wait for each other, so a slow read does not stop the sampling.
 * At most 50 reads run at once, so that they do not overload the machine.
 */
export function samplePage(url: string): Samples {
  const samples = { bodies: new Set<string>(), failures: new Set<string>(), longestGapMs: 0 };
  let lastMs = performance.now();
  const running = new Set<Promise<void>>();
  const read = async (): Promise<void> => {
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    const body = await response.text();
    if (!response.ok) {
      samples.failures.add(`status ${response.status}`);
      return;
    }
    samples.bodies.add(body);
    const nowMs = performance.now();
    samples.longestGapMs = Math.max(samples.longestGapMs, nowMs - lastMs);
    lastMs = nowMs;
  };
  const timer = setInterval(() => {
    if (running.size >= 50) return;
    const reading = read().catch((error: unknown) => void samples.failures.add(String(error)));
    running.add(reading);
    void reading.then(() => running.delete(reading));
  }, 20);
  return {
    bodies: samples.bodies,
    failures: samples.failures,
    get longestGapMs() {
      return samples.longestGapMs;
    },
    stop: async () => {
      clearInterval(timer);
      await Promise.all(running);
    },
  };
}
