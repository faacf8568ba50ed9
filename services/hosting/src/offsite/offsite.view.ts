import {
  type OffsiteCopyView,
  type OffsiteRestorePhase,
  offsiteEncryptionScheme,
  type SiteOffsite,
} from '@drydock/contracts/hosting/offsite';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { isInProgress, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { Destination } from '../providers/offsite-place.types';
import type { ListPage } from '../sites/site-list';
import { ancestryOf, restorableChain } from './offsite.rules';
import type { Copy } from './offsite.types';

export interface OffsiteFacts {
  destination: Destination | null;
  /** The destination's, newest first. */
  copies: readonly Copy[];
  unfinished: UnfinishedWorkflow | null;
  /** The site's last restore from a copy. */
  restore: { view: WorkflowView; copyId: string } | null;
}

export function viewOffsite(
  { destination, copies, unfinished, restore }: OffsiteFacts,
  { asked, pageOf }: ListPage,
): SiteOffsite {
  const finished = copies.filter(({ status }) => status !== 'running');
  const behind = finished.filter(({ id }) => asked.after === null || id < asked.after).slice(0, asked.limit + 1);
  const shown = pageOf(behind, (copy) => viewCopy(copies, copy));
  const last = finished.find(({ status }) => status === 'completed');
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
    restore: restore === null ? null : viewRestore(restore.view, restore.copyId),
  };
}

const viewPlace = ({ endpoint, region, bucket, prefix }: Destination) => ({
  kind: 's3' as const,
  endpoint,
  region,
  bucket,
  prefix,
});

/** `copies`: all of its destination, since a copy may depend on others. */
export function viewCopy(copies: readonly Copy[], copy: Copy): OffsiteCopyView {
  const ancestors = ancestryOf(copies, copy).slice(0, -1);
  const isWhole = copy.status === 'failed' || restorableChain(copies, copy) !== null;
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

/**
 * A restore is unfinished until its last step: the site is the restored one from `thaw` on, but its safety copy is
 * still being made.
 */
function viewRestore(view: WorkflowView, copyId: string): NonNullable<SiteOffsite['restore']> {
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

function phaseOf({ status, steps }: WorkflowView): OffsiteRestorePhase {
  if (status === 'succeeded') return 'done';
  if (status === 'failed') return 'failed';
  if (steps.every((step) => step.status === 'pending')) return 'queued';
  const current = steps.find((step) => step.status !== 'succeeded');
  return phaseOfStep[current?.name ?? ''] ?? 'switching';
}
