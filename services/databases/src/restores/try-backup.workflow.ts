import { type Major, majorOf, majorSchema } from '@drydock/contracts/databases/major';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { timeLimit } from '@drydock/process';
import type { Caller } from '@drydock/service/access';
import { fencedCall } from '@drydock/workflow/definition';
import { readStartBy } from '@drydock/workflow/http';
import { cancelUnclaimed, findUnfinished, startWorkflow, watchWorkflow } from '@drydock/workflow/store';
import { z } from 'zod';
import { findBackup, recordProof } from '../backups/backup.store';
import type { BackupProof, DatabaseBackup } from '../backups/backup.types';
import { defineWorkflow, type HandlerContext, refOf } from '../context/context';
import { databaseResourceKey, databaseSubject, type ManagedDatabase } from '../databases/database.types';
import { definitely } from '../providers/database-errors';

/*
 * The trial load of a preflight. It loads the schema of a backup into an instance that exists only for the trial. A
 * worker carries the trial out, because the API has no key of the archives. The trial locks the database, so a restore
 * that is requested meanwhile is refused with `operation_in_progress`. The trial gets one attempt of one minute.
 */

const trialSeconds = 60;
/**
 * How long a preflight waits for a trial, in milliseconds. If a worker has begun the trial by then, the trial
 * continues, and the next preflight waits for it or shows its result. Otherwise the trial is cancelled.
 */
const waitMs = 12_000;
/**
 * For how long the refusals of a trial are shown without a new trial, in milliseconds. A later trial may succeed, for
 * example because a missing role or extension has been added.
 */
const failureKeptMs = 3_600_000;

export const tryBackupWorkflow = defineWorkflow({
  kind: 'try_database_backup',
  input: z.strictObject({ backupId: z.uuid(), major: majorSchema }),
})
  .step('load_schema', {
    timeoutSeconds: trialSeconds,
    attemptsMax: 1,
    run: async (step, { database, provider, backupStorage, now }) => {
      const { backupId, major } = step.input;
      const backup = await findBackup(database.pool, step.subject.id, backupId);
      if (backup === null || backup.archive === null) return null;
      const { storageKey, manifestMac } = backup.archive;
      const archive = { source: backupStorage.source(storageKey), archiveId: backupId, manifestMac };
      const call = { ...fencedCall(step), progress: step.progress };
      const { refused, findings } = await definitely(
        provider.trySchema(refOf(step), major, archive, call),
        'content_not_loaded',
      );
      return { of: 'schema' as const, major, at: now().toISOString(), refused: [...refused], findings: [...findings] };
    },
    commit: async (tx, step, proof) => {
      if (proof !== null) await recordProof(tx, step.input.backupId, proof);
    },
  })
  .build();

/**
 * Whether the proof is enough to decide about a restore into this major. A proof without a refusal stays valid for
 * ever, because the archive does not change. A proof with refusals is valid for an hour.
 */
export function suffices(proof: BackupProof | null, major: Major, now: Date): boolean {
  if (proof === null || proof.major !== major) return false;
  return proof.refused.length === 0 || now.getTime() - Date.parse(proof.at) < failureKeptMs;
}

interface Asking {
  caller: Pick<Caller, 'keyId'>;
  requestId: string;
}

/**
 * Loads the schema of the backup on trial, or waits for a trial that already runs on the database. Resolves with null
 * once the backup has a proof, otherwise with a finding that tells why it has none.
 */
export async function tryBackup(
  context: HandlerContext,
  { caller, requestId }: Asking,
  managed: ManagedDatabase,
  backup: DatabaseBackup,
): Promise<Finding | null> {
  const { database, listener } = context;
  const { id: databaseId, orgId, mode } = managed;
  const resourceKey = databaseResourceKey(databaseId);
  const running = await findUnfinished(database.sql(), resourceKey);
  if (running !== null && running.kind !== tryBackupWorkflow.kind)
    return unproven('something else is being done to the database');
  const started = await database.transaction(async (tx) =>
    startWorkflow(database.sql(tx), {
      kind: tryBackupWorkflow.kind,
      definition: tryBackupWorkflow,
      resourceKey,
      subject: databaseSubject(databaseId),
      orgId,
      mode,
      input: { backupId: backup.id, major: majorOf(managed.engineVersion) },
      startBy: await readStartBy(database.sql(tx)),
      actorKeyId: caller.keyId,
      requestId,
    }),
  );
  const { workflowId } = started;
  if (started.started) context.enqueue({ workflowId, orgId, kind: tryBackupWorkflow.kind }, 'interactive');
  let isClaimed = false;
  for await (const { view } of watchWorkflow(database.sql(), workflowId, {
    listener,
    signal: timeLimit(waitMs),
  })) {
    if (view.status === 'succeeded') return started.started ? null : outcomeOfOther(context, managed, backup.id);
    if (view.status === 'failed') return failureOf(view.error);
    isClaimed = view.status === 'running';
  }
  if (!isClaimed && (await cancelUnclaimed(database, workflowId))) return unproven('nobody was there to do it');
  return unproven('it has not ended yet; ask again in a moment');
}

/**
 * Tells whether a trial that another request had begun has proven this backup. That trial may have loaded another
 * backup.
 */
async function outcomeOfOther(
  { database }: HandlerContext,
  managed: ManagedDatabase,
  backupId: string,
): Promise<Finding | null> {
  const backup = await findBackup(database.pool, managed.id, backupId);
  const isKnown = suffices(backup?.proof ?? null, majorOf(managed.engineVersion), new Date());
  return isKnown ? null : unproven('another backup of the database was being tried; ask again');
}

const unproven = (reason: string): Finding => ({
  level: 'WARNING',
  code: 'backup_not_proven',
  detail: `It is not known whether the backup can be loaded: no trial load could be made now, since ${reason}.`,
});

function failureOf(error: { code: string; detail?: string | undefined } | null): Finding {
  const isOfBackup = error !== null && /^(backup|database|version)_/.test(error.code);
  return isOfBackup
    ? { level: 'ERROR', code: error.code, detail: error.detail ?? error.code }
    : unproven('it took too long or failed');
}
