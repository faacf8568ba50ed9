import type { RestoreContents } from '@drydock/contracts/hosting/backups';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { findingsOfRecord, type RecordedAnswer } from '../sites/probe.rules';
import { type Site, sitePath } from '../sites/site.types';
import { hasSpace, neededBytes } from './backup.rules';
import { findingsOfSkipped, type SkippedSummary } from './skipped.view';

type Finding = Preflight['findings'][number];

export interface PreflightFacts {
  site: Site;
  /** The backup or copy that was named; null when there is no such. */
  point: { id: string; createdAt: Date } | null;
  /** The unpacked size of the content; null when it is not known. */
  rawBytes: number | null;
  /** On the site's host; null when it does not answer. */
  freeBytes: number | null;
  /** The paths that the point left out; absent for a kind of point that does not record them. */
  skipped?: SkippedSummary;
  /** How the site answered when the point was taken; left out for a kind of point that does not record it. */
  answer?: RecordedAnswer;
  /** The archive should be in our storage, but is not. */
  isMissing: boolean;
  /** The part that was asked for; absent: all. */
  contents: RestoreContents | undefined;
}

/** A backup older than this gets a warning, in seconds. */
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

/** `left`: the fate of the database when only the files are restored. */
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
