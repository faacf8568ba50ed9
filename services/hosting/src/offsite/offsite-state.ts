import {
  getSiteOffsite,
  type getSiteOffsiteCopy,
  type getSiteOffsite as getSiteOffsiteEndpoint,
  type OffsiteCopyView,
  type OffsiteRestorePhase,
  offsiteEncryptionScheme,
  type SiteOffsite,
} from '@drydock/contracts/hosting/offsite';
import { problem } from '@drydock/contracts/platform/problem';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import type { ReadHandlers } from '@drydock/service/http';
import { isInProgress } from '@drydock/workflow/definition';
import { findUnfinished, readWorkflowById } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Reader } from '../context/database.store';
import type { Destination } from '../providers/offsite-storage';
import { type Site, siteResourceKey } from '../sites/site.types';
import { type ListPage, readListPage, readSite } from '../sites/site-record';
import { ancestryOf, type Copy, type CopyIndex, indexCopies, type OffsiteWorld } from './offsite.rules';
import { findActive, findCopy, findLastWorkflow, listCopies, listFinished } from './offsite.store';
import { restoreOffsiteWorkflow } from './restore-offsite.workflow';

/** The facts that the rules and the view need, read from the database. `copies` begins with the newest copy. */
interface OffsiteFacts extends OffsiteWorld {
  destination: Destination | null;
}

/** The rows of a page: up to one more than its limit. */
interface PageRows extends ListPage {
  finished: readonly Copy[];
}

interface Restore {
  view: WorkflowView;
  copyId: string;
}

function viewOffsite(
  { destination, copies, unfinished }: OffsiteFacts,
  restore: Restore | null,
  { finished, pageOf }: PageRows,
): SiteOffsite {
  const index = indexCopies(copies);
  const shown = pageOf(finished, (copy) => viewCopy(index, copy));
  const last = copies.find(({ status }) => status === 'completed');
  return {
    configured: destination !== null,
    destination: destination === null ? null : viewPlace(destination),
    encryption:
      destination?.encryptionKeyId == null
        ? null
        : { scheme: offsiteEncryptionScheme, key_id: destination.encryptionKeyId },
    in_progress: isInProgress(unfinished),
    last_copy_at: last?.completedAt?.toISOString() ?? null,
    last_error_code: destination?.lastErrorCode ?? '',
    copies: shown.data,
    page: shown.page,
    restore: restore === null ? null : viewRestore(restore),
  };
}

const viewPlace = ({ endpoint, region, bucket, prefix }: Destination) => ({
  kind: 's3' as const,
  endpoint,
  region,
  bucket,
  prefix,
});

/**
 * `index` must hold every copy at the destination that has not failed. Otherwise parts of the chain of `copy` could be
 * missing in it.
 */
export function viewCopy(index: CopyIndex, copy: Copy): OffsiteCopyView {
  const ancestors = ancestryOf(index, copy).slice(0, -1);
  const isWhole = copy.status === 'failed' || index.whole.has(copy.id);
  return {
    id: copy.id,
    kind: copy.kind,
    base_id: ancestors[0]?.id ?? copy.parentId,
    depends_on: ancestors.map(({ id }) => id),
    created_at: copy.createdAt.toISOString(),
    size_bytes: copy.archive?.sizeBytes ?? 0,
    status: copy.status === 'failed' ? 'failed' : isWhole ? 'completed' : 'incomplete_chain',
    verified_at: copy.verifiedAt?.toISOString() ?? null,
  };
}

const phaseOfStep: Readonly<Record<string, OffsiteRestorePhase>> = {
  recheck: 'fetching',
  fetch: 'fetching',
  verify: 'verifying',
  stage: 'staging',
  clear: 'staging',
};

function viewRestore({ view, copyId }: Restore): NonNullable<SiteOffsite['restore']> {
  return {
    workflow_id: view.id,
    copy_id: copyId,
    phase: phaseOf(view),
    progress: view.progress,
    started_at: view.started_at ?? view.created_at,
    finished_at: view.finished_at,
    error_code: view.error?.code ?? '',
  };
}

/** The phase stays `switching` until the whole restore has ended, although visitors use the site after `thaw`. */
function phaseOf({ status, steps }: WorkflowView): OffsiteRestorePhase {
  if (status === 'succeeded') return 'done';
  if (status === 'failed') return 'failed';
  if (steps.every((step) => step.status === 'pending')) return 'queued';
  const current = steps.find((step) => step.status !== 'succeeded');
  return phaseOfStep[current?.name ?? ''] ?? 'switching';
}

/**
 * The id that binds a cursor to the list of copies. Every endpoint that answers the state uses this id, so that the
 * list accepts the cursors of all these answers.
 */
export const copyList = getSiteOffsite.id;

/** The facts that the rules of offsite copies need, as `tx` sees them. */
export async function readOffsiteWorld(
  { database }: Pick<HandlerContext, 'database'>,
  tx: Reader,
  site: Site,
): Promise<OffsiteFacts> {
  const destination = await findActive(tx, site);
  const copies = destination === null ? [] : await listCopies(tx, destination);
  return { site, destination, copies, unfinished: await findUnfinished(database.sql(tx), siteResourceKey(site.id)) };
}

/** Reads the state within `tx`, so that the answer of a request shows the work that the request has just begun. */
export async function readOffsiteState(
  context: Pick<HandlerContext, 'database'>,
  tx: Reader,
  site: Site,
  page: ListPage,
): Promise<SiteOffsite> {
  const world = await readOffsiteWorld(context, tx, site);
  const { after, limit } = page.asked;
  const { destination } = world;
  const finished = destination === null ? [] : await listFinished(tx, destination, { after, take: limit + 1 });
  return viewOffsite(world, await readLastRestore(context, tx, site), { ...page, finished });
}

async function readLastRestore(
  { database }: Pick<HandlerContext, 'database'>,
  tx: Reader,
  site: Site,
): Promise<Restore | null> {
  const last = await findLastWorkflow(tx, site, restoreOffsiteWorkflow.kind);
  const found = last === null ? undefined : await readWorkflowById(database.sql(tx), last.id);
  if (last === null || found === undefined) return null;
  return { view: found.view, copyId: restoreOffsiteWorkflow.input.parse(last.input).copyId };
}

export const getOffsite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, copyList, request);
      const site = await readSite(context, request);
      return { status: 200, body: await readOffsiteState(context, context.database.pool, site, page) };
    },
  }) satisfies ReadHandlers<typeof getSiteOffsiteEndpoint>;

/** A copy that is still being taken gives 404, because the list leaves it out too. */
export const getOffsiteCopy = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const { destination, copies } = await readOffsiteWorld(context, context.database.pool, site);
      const copy = await findCopy(context.database.pool, site.id, request.params.copyId);
      if (copy === null || copy.destinationId !== destination?.id || copy.status === 'running')
        throw problem('site_offsite_copy_not_found');
      return { status: 200, body: viewCopy(indexCopies(copies), copy) };
    },
  }) satisfies ReadHandlers<typeof getSiteOffsiteCopy>;
