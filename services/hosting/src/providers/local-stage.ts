import { describeArchive, type LocalTools } from './local-pack';
import {
  type ArchiveToStage,
  type FencedCallWithProgress,
  linksOf,
  type SiteRef,
  type StagedRelease,
} from './site-host';

/** Lets the host stage in the site's box; the objects that it asks for come from the storage. */
export async function stageArchive(
  { client, archiveKey }: LocalTools,
  site: SiteRef,
  releaseId: string,
  { parents = [], origin = site, contents = 'all', ...newest }: ArchiveToStage,
  { fence, workflowId, signal, progress }: FencedCallWithProgress,
): Promise<StagedRelease> {
  const links = linksOf(origin, [...parents, newest]);
  const spec = {
    release_id: releaseId,
    origin: { site_id: origin.siteId, organisation_id: origin.orgId },
    chain: await Promise.all(links.map((link) => describeArchive(link, archiveKey))),
    // An older agent does not know the field, and stages everything.
    ...(contents === 'all' ? {} : { contents }),
  };
  const archives = { sources: links.map(({ source }) => source) };
  const { lost, database } = await client.stage(site.siteId, spec, archives, {
    claim: { fence, workflowId, signal },
    onProgress: progress,
  });
  return { lost, database };
}
