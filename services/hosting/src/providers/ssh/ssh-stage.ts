import { SkippedPaths } from '@drydock/agent/site';
import {
  ArchiveError,
  type ArchiveLink,
  openEntries,
  type RootKey,
  verifyArchive,
  verifyChain,
} from '@drydock/archive';
import {
  type ArchiveToStage,
  type FencedCallWithProgress,
  linksOf,
  SiteHostError,
  type SiteRef,
  type StagedRelease,
} from '../site-host';
import { databaseStream, filesStream, lostIn } from './ssh-pack';
import { databaseOf, databaseServerOf, runOnSite } from './ssh-site';
import type { SshArchiveTools } from './ssh-tools';

/** Checks every byte of the chain; resolves with the raw bytes of the newest archive. @throws ArchiveError */
async function verifyAll(chain: readonly ArchiveLink[], key: RootKey, signal: AbortSignal): Promise<number> {
  const options = { contents: true, signal };
  const [only] = chain;
  if (only !== undefined && chain.length === 1) {
    const manifest = await verifyArchive(only.source, key, only.expected, options);
    if (manifest.parent_mac !== null)
      throw new ArchiveError('chain_gap', 'an increment without the archives before it');
    return manifest.raw_bytes;
  }
  return (await verifyChain(chain, key, options)).at(-1)?.raw_bytes ?? 0;
}

interface Content {
  chain: readonly ArchiveLink[];
  key: RootKey;
  signal: AbortSignal;
  onBytes(count: number): void;
}

/**
 * The one stream of a root. @throws ArchiveError, and SiteHostError `unsupported` for an archive that another platform
 * or database wrote
 */
async function* contentOf(
  { root, path }: { root: string; path: string },
  { chain, key, signal, onBytes }: Content,
): AsyncGenerator<Buffer> {
  let isFound = false;
  for await (const entry of openEntries({ chain, key, root, signal })) {
    if (isFound || entry.path !== path)
      throw new SiteHostError('unsupported', `${root} of this archive is ${entry.path}, and not ${path}`);
    isFound = true;
    for await (const piece of entry.content()) {
      onBytes(piece.length);
      // Copies the piece: the reader reuses its memory for the next one, while the connection may still hold this one.
      yield Buffer.from(piece);
    }
  }
  if (!isFound) throw new ArchiveError('unknown_root', `${root} of this archive is empty`);
}

/**
 * GNU tar creates a file with its final mode before it sets its attributes. So an account that is not root cannot
 * restore the attributes of a read-only file.
 */
const closedToTar = /^tar: setxattr(?:at)?: Cannot set /;

/**
 * Stages an archive over ssh. Every archive of the chain is verified before the first byte is sent, and each byte is
 * checked once more as it is sent.
 */
export async function stageOverSsh(
  tools: SshArchiveTools,
  site: SiteRef,
  releaseId: string,
  { parents = [], origin = site, contents = 'all', ...newest }: ArchiveToStage,
  { fence, signal, progress }: FencedCallWithProgress,
): Promise<StagedRelease> {
  signal.throwIfAborted();
  const { archiveKey: key } = tools;
  const chain = linksOf(origin, [...parents, newest]);
  const rawBytes = await verifyAll(chain, key, signal);
  const args = [databaseOf(site, releaseId)];
  const call = { site, releaseId, fence, signal };
  const beginStage = () =>
    runOnSite(tools, { ...call, script: 'beginStage', args: [...args, String(rawBytes), contents] });
  await beginStage();
  let sent = 0;
  const onBytes = (count: number): void => {
    sent += count;
    progress(Math.min(sent / Math.max(rawBytes, 1), 1));
  };
  const database = databaseStream(databaseServerOf(tools.config).engine);
  const content = { chain, key, signal, onBytes };
  const writeFiles = async (as: 'account' | 'owner') => {
    const lost = new SkippedPaths();
    let isClosed = false;
    const onErrorLine = (line: string): void => {
      const path = lostIn(line);
      if (path !== null) lost.add(path);
      isClosed ||= closedToTar.test(line);
    };
    try {
      await runOnSite(tools, {
        ...call,
        script: 'writeFiles',
        args: [as],
        input: contentOf(filesStream, content),
        onErrorLine,
      });
    } catch (error) {
      if (!isClosed || as === 'owner') throw error;
      return null;
    }
    return lost;
  };
  let lost = await writeFiles('account');
  if (lost === null) {
    sent = 0;
    await beginStage();
    lost = await writeFiles('owner');
  }
  if (contents === 'all')
    await runOnSite(tools, { ...call, script: 'writeDatabase', args, input: contentOf(database, content) });
  await runOnSite(tools, { ...call, script: 'endStage', args: [...args, contents] });
  return { lost: lost?.result ?? { count: 0, paths: [] }, database: [] };
}
