import type { Sql } from '@drydock/service/database/sql';
import type { WorkflowListener } from './listener';
import { pausesUntilChange } from './pause';
import { readWorkflowById, type VersionedWorkflow } from './read-workflow';

export interface WatchOptions {
  /** The last version that the watcher has seen (`Last-Event-ID`); it gets what is newer. */
  afterVersion?: number;
  /** Ends the watching. */
  signal?: AbortSignal;
  listener?: WorkflowListener;
}

/** The clock's share: without a listener this is how stale a watcher may be, in ms. */
const pollMs = { listening: 2_000, alone: 400 };

/**
 * Each version of a workflow as it comes, latest first to be seen: versions in between may be left out, the last one never is. Ends after a version that is
 * succeeded or failed; one that needs attention may still go on. The caller has checked that the workflow is the watcher's to see.
 */
export async function* watchWorkflow(
  sql: Sql,
  workflowId: string,
  options: WatchOptions = {},
): AsyncGenerator<VersionedWorkflow, void, void> {
  const { listener, signal } = options;
  let seen = options.afterVersion ?? 0;
  const pauses = pausesUntilChange(workflowId, listener, signal);
  try {
    while (signal?.aborted !== true) {
      const current = await readWorkflowById(sql, workflowId);
      if (current === undefined) return;
      if (current.version > seen) {
        seen = current.version;
        yield current;
      }
      if (current.view.status === 'succeeded' || current.view.status === 'failed') return;
      await pauses.pause(listener === undefined ? pollMs.alone : pollMs.listening);
    }
  } finally {
    pauses.close();
  }
}
