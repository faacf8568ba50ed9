import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { dataPath, type Section, sectionPaths } from '../dump/dump-format';
import { TransferError } from '../session/transfer-error';

const dataPathPattern = /^data\/(\d{1,7})\.copy$/;

/** Returns a table's index in tables.json, or null for another kind of path. */
function tableIndexOf(path: string): number | null {
  const digits = dataPathPattern.exec(path)?.[1];
  return digits === undefined ? null : Number(digits);
}

async function* readFileContent(file: string): AsyncGenerator<Buffer> {
  for await (const part of createReadStream(file, { highWaterMark: 256 * 1024 })) yield part;
}

async function listDataPaths(folder: string): Promise<string[]> {
  const names = await readdir(path.join(folder, 'data')).catch(() => []);
  const indexes = names.map((name) => tableIndexOf(`data/${name}`)).filter((index) => index !== null);
  return indexes.sort((a, b) => a - b).map(dataPath);
}

/** Yields the sections in a folder, in the order that `loadDatabase` expects. */
export async function* readSectionsFolder(folder: string): AsyncGenerator<Section> {
  const { tables, schemaPre, schemaPost, properties, sequences, largeObjects, manifest } = sectionPaths;
  const names = [
    tables,
    schemaPre,
    schemaPost,
    properties,
    ...(await listDataPaths(folder)),
    sequences,
    largeObjects,
    manifest,
  ];
  for (const name of names) {
    const file = path.join(folder, name);
    const found = await stat(file).catch(() => null);
    // Format version 1 has no properties.
    if (found === null && name === properties) continue;
    if (!found?.isFile()) throw new TransferError('dump_malformed', `${name} is missing`);
    yield { path: name, content: readFileContent(file) };
  }
}

/** Writes the sections into a folder, which is created. Nothing is synced to disk. */
export async function writeSectionsFolder(folder: string, sections: AsyncIterable<Section>): Promise<void> {
  await mkdir(path.join(folder, 'data'), { recursive: true });
  for await (const section of sections) {
    await pipeline(Readable.from(section.content), createWriteStream(path.join(folder, section.path), { mode: 0o600 }));
  }
}
