import { createHash } from 'node:crypto';
import { noAttributes } from '../files/attributes';
import { refuse } from '../format/archive-error';
import { defaultLimits, formatBounds } from '../format/archive-limits';
import type { Entry } from '../format/entry';
import { pathProblem } from '../format/entry-rules';
import { bytesOfText } from '../format/path-bytes';
import type { RootTally } from '../format/root-tally';
import type { BlockWriter } from './block-writer';
import type { Pace } from './pace';
import type { StreamEntry } from './pack-roots';

export interface StreamPacking {
  entries: AsyncIterable<StreamEntry>;
  writer: BlockWriter;
  tally: RootTally;
  pace: Pace;
  createdAt: Date;
}

/**
 * Packs named streams in their order. A stream has no mode and time of its own: it gets 0600, and the time of the
 * archive.
 */
export async function packStream(packing: StreamPacking): Promise<void> {
  const seen = new Set<string>();
  for await (const source of packing.entries) {
    const path = bytesOfText(source.path);
    const problem = pathProblem(path, defaultLimits.depthMax);
    if (problem !== null) throw new TypeError(`${problem}: ${source.path}`);
    if (seen.has(path)) throw new TypeError(`the same path twice: ${source.path}`);
    seen.add(path);
    if (seen.size > formatBounds.streamEntries) refuse('limit_exceeded', 'too many streams in one root');
    const entry = await packContent(packing, path, source.content);
    packing.tally.count(entry);
    await packing.writer.add(entry);
  }
}

async function packContent(packing: StreamPacking, path: string, content: AsyncIterable<Buffer>): Promise<Entry> {
  const digest = createHash('sha256');
  let size = 0;
  for await (const piece of content) {
    await packing.pace();
    digest.update(piece);
    await packing.writer.append(piece);
    size += piece.length;
  }
  const seconds = Math.floor(packing.createdAt.getTime() / 1000);
  const time = { mtimeSeconds: seconds, mtimeNanoseconds: (packing.createdAt.getTime() - seconds * 1000) * 1_000_000 };
  return {
    type: 'file',
    path,
    mode: 0o600,
    ...time,
    size,
    linked: false,
    sparse: false,
    sha256: digest.digest(),
    link: '',
    attributes: noAttributes,
  };
}
