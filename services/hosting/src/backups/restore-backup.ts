import type {
  preflightSiteBackupRestore,
  RestoreContents,
  restoreSiteBackup,
} from '@drydock/contracts/hosting/backups';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowedOn, followHeaders, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeSite } from '../providers/site-host';
import { findingsOfRecord, type RecordedAnswer } from '../sites/probe.rules';
import { changeStatus } from '../sites/site.store';
import { onSite, type Site, sitePath, siteResourceKey } from '../sites/site.types';
import { holdSite, readListPage, readSite } from '../sites/site-record';
import { hasSpace, neededBytes, refuseRestore } from './backup.rules';
import { findBackup } from './backup.store';
import { backupList, readSurface, readSurfaceRows } from './backup-surface';
import { restoreBackupWorkflow } from './restore-backup.workflow';
import { findingsOfSkipped, type SkippedSummary } from './skipped.view';

/**
 * Decides by the same rule as the restore, and changes nothing. A host that does not answer is a finding, not an error.
 */
export const preflightRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, body, query, requestId } = request;
      const { database, siteHosts, backupStorage } = context;
      const site = await readSite(context, request);
      const backup = await findBackup(database.pool, site, body.backup_id);
      const unfinished = await findUnfinished(database.sql(), siteResourceKey(site.id));
      const refusal = refuseRestore({ site, unfinished }, backup, now);
      const [hosted, isStored] = await Promise.all([
        describeSite(siteHosts, site).catch(() => null),
        backup === null || backup.archive === null
          ? false
          : backupStorage.has(backup.archive.storageKey).catch(() => false),
      ]);
      const archive = backup?.archive ?? null;
      const isMissing = archive !== null && !isStored;
      const facts = {
        site,
        contents: query.contents,
        point: backup,
        rawBytes: archive?.rawBytes ?? null,
        freeBytes: hosted?.freeBytes ?? null,
        isMissing,
        ...(backup !== null && { skipped: backup.skipped, answer: backup.answer }),
      };
      return {
        status: 200,
        body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId), now),
      };
    },
  }) satisfies ReadHandlers<typeof preflightSiteBackupRestore>;

/** Accepts a restore of the site from the named backup, which {@link restoreBackupWorkflow} carries out. */
export const restoreBackup = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { now, body } = request;
      const site = await holdSite(tx, request);
      const page = readListPage(context, backupList, { ...request, query: {} });
      const rows = await readSurfaceRows(tx, site, page);
      // The backup to restore is usually on the page of backups that the answer shows. Then no second query is needed.
      const backup = rows.find(({ id }) => id === body.backup_id) ?? (await findBackup(tx, site, body.backup_id));
      const refuse = (unfinished: UnfinishedWorkflow | null) => refuseRestore({ site, unfinished }, backup, now);
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      const input = {
        backupId: body.backup_id,
        safetyCopyId: uuidv7(),
        platform: site.platform,
        statusBefore: site.status,
        ...request.query,
      };
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onSite(site.id),
        definition: restoreBackupWorkflow,
        input,
        action: 'backup.restore',
      });
      await changeStatus(tx, site.id, 'restoring');
      const accepted = { id: workflowId, kind: restoreBackupWorkflow.kind, status: 'queued' as const };
      const known = { rows, unfinished: accepted };
      const surface = await readSurface(context, tx, { ...site, status: 'restoring' }, page, { known });
      return { status: 202, headers: followHeaders(sitePath(site.id), workflowId), body: surface };
    },
  }) satisfies ExecuteHandlers<typeof restoreSiteBackup, Tx, undefined>;

type Finding = Preflight['findings'][number];

export interface PreflightFacts {
  site: Site;
  /** The named backup or copy. Null if it does not exist. */
  point: { id: string; createdAt: Date } | null;
  /** The unpacked size of the content in bytes; null when it is not known. */
  rawBytes: number | null;
  /** The free bytes of the site's host; null when the host does not answer, or does not know the site. */
  freeBytes: number | null;
  /** The paths that the backup or copy left out. Absent if they were not recorded. */
  skipped?: SkippedSummary;
  /** How the site answered when the backup or copy was taken. Absent if the answer was not recorded. */
  answer?: RecordedAnswer;
  /** Whether the archive was not found in the storage, or the storage did not answer. */
  isMissing: boolean;
  /** Undefined means files and database. */
  contents: RestoreContents | undefined;
}

/** A backup older than this gets a warning. */
const oldAfterSeconds = 7 * 86_400;

export function viewPreflight(facts: PreflightFacts, refusal: Preflight['refusal'], now: Date): Preflight {
  const { site, point, rawBytes, freeBytes } = facts;
  const ageSeconds = point === null ? 0 : Math.max(0, Math.floor((now.getTime() - point.createdAt.getTime()) / 1000));
  const needed = rawBytes === null ? null : neededBytes({ rawBytes });
  return {
    would:
      `Overwrite the files${facts.contents === 'files' ? '' : ' and the database'} of ${site.primaryDomain}; ` +
      'a safety copy of the replaced state is kept as a backup',
    resource: sitePath(site.id),
    point: point === null ? null : { id: point.id, taken_at: point.createdAt.toISOString(), age_seconds: ageSeconds },
    space: needed === null || freeBytes === null ? null : { needed_bytes: needed, free_bytes: freeBytes },
    refusal,
    findings: findingsOf(facts, needed, ageSeconds),
    undo: false,
  };
}

/** `left` tells how a restore of only the files leaves the database, such as `stays as it is`. */
export const findingOfContents = (contents: RestoreContents | undefined, left: string): Finding =>
  contents === 'files'
    ? { level: 'WARNING', code: 'files_only', detail: `Only the files are restored; the database ${left}.` }
    : {
        level: 'INFO',
        code: 'files_may_do',
        detail: `If the database cannot be loaded, contents=files restores the files alone; the database then ${left}.`,
      };

function findingsOf(
  { site, point, freeBytes, isMissing, skipped, answer, contents }: PreflightFacts,
  needed: number | null,
  ageSeconds: number,
): Finding[] {
  const findings: Array<Finding | false> = [
    ageSeconds > oldAfterSeconds && {
      level: 'WARNING',
      code: 'old_backup',
      detail: `Everything written since ${point?.createdAt.toISOString()} is replaced.`,
    },
    freeBytes === null && {
      level: 'WARNING',
      code: 'host_unreachable',
      detail: "The site's host does not answer; its space is unknown.",
    },
    needed !== null &&
      freeBytes !== null &&
      !hasSpace(needed, freeBytes) && {
        level: 'ERROR',
        code: 'storage_full',
        detail: `${needed} bytes are needed and ${freeBytes} are free.`,
      },
    ...(skipped === undefined ? [] : findingsOfSkipped(skipped)),
    isMissing && {
      level: 'ERROR',
      code: 'backup_data_missing',
      detail: "The backup's data was not found in the storage.",
    },
    ...(answer === undefined ? [] : findingsOfRecord(answer)),
    point !== null && findingOfContents(contents, 'stays as it is'),
    site.status === 'suspended' && { level: 'INFO', code: 'site_suspended', detail: 'The site stays suspended.' },
  ];
  return findings.filter((finding) => finding !== false);
}
