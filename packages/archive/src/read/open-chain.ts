import { refuse } from '../format/archive-error';
import type { ArchiveKey } from '../format/archive-keys';
import type { ArchiveLimits } from '../format/archive-limits';
import type { ManifestRoot } from '../format/manifest';
import { type ArchiveLink, type OpenArchive, openArchive } from './open-archive';

/**
 * Verifies every manifest of a chain and every link between them, the full archive first. Nothing else is read. @throws
 * ArchiveError with the reasons of openArchive, and `chain_gap`, `chain_cycle`, `foreign`, `limit_exceeded`
 */
export async function openChain(
  links: readonly ArchiveLink[],
  key: ArchiveKey,
  limits: ArchiveLimits,
): Promise<OpenArchive[]> {
  if (links.length === 0) refuse('chain_gap', 'a chain without archives');
  const archives: OpenArchive[] = [];
  for (const link of links) archives.push(await openArchive(link, key, limits));
  checkLinks(archives);
  const entries = archives.reduce((sum, archive) => sum + archive.manifest.entries, 0);
  const rawBytes = archives.reduce((sum, archive) => sum + archive.manifest.raw_bytes, 0);
  if (entries > limits.entriesMax || rawBytes > limits.rawBytesMax)
    refuse('limit_exceeded', `${entries} entries, ${rawBytes} bytes in the chain`);
  return archives;
}

function checkLinks(archives: readonly OpenArchive[]): void {
  const ids = new Set<string>();
  archives.forEach((archive, at) => {
    const { manifest } = archive;
    if (ids.has(manifest.archive_id)) refuse('chain_cycle', `archive ${manifest.archive_id} occurs twice`);
    ids.add(manifest.archive_id);
    const parent = archives[at - 1];
    if (parent === undefined) {
      if (manifest.parent_mac !== null) refuse('chain_gap', 'the chain does not begin with a full archive');
      return;
    }
    checkLink(parent, archive);
  });
}

function checkLink(parent: OpenArchive, child: OpenArchive): void {
  const [older, newer] = [parent.manifest, child.manifest];
  if (newer.site_id !== older.site_id || newer.organisation_id !== older.organisation_id)
    refuse('foreign', 'a chain over two sites');
  if (newer.parent_mac !== parent.manifestMac) refuse('chain_gap', `archive ${newer.archive_id} has another parent`);
  if (newer.base_id !== older.base_id) refuse('chain_gap', `archive ${newer.archive_id} has another base`);
  if (newer.sequence <= older.sequence) refuse('chain_gap', `archive ${newer.archive_id} is not newer than its parent`);
  // Streams are complete in each archive, so a newer archive may have streams that an older one does not have.
  const has = (roots: ManifestRoot[], { name, kind }: ManifestRoot): boolean =>
    roots.some((other) => other.name === name && other.kind === kind);
  const isContinued = older.roots.every((root) => has(newer.roots, root));
  const isKnown = newer.roots.every((root) => root.kind === 'stream' || has(older.roots, root));
  if (!isContinued || !isKnown) refuse('mismatch', 'archives of a chain with different roots');
}
