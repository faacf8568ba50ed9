import type { Finding } from '@drydock/contracts/platform/preflight';

interface Answer {
  httpStatus: number;
  isSqlOk: boolean;
}

/**
 * The site's answer when a backup of it was taken. A field is null if there was no answer, or if the backup was taken
 * by an earlier version of Drydock, which did not record answers.
 */
export interface RecordedAnswer {
  httpStatus: number | null;
  isSqlOk: boolean | null;
}

export const noAnswer: RecordedAnswer = { httpStatus: null, isSqlOk: null };

const isGoodPage = (httpStatus: number): boolean => httpStatus >= 200 && httpStatus < 500;

/** A site serves if its database takes a query and its front page answers anything but a server error, even 404. */
export const serves = ({ httpStatus, isSqlOk }: Answer): boolean => isGoodPage(httpStatus) && isSqlOk;

/** Records a missing answer as null, because the machine may only have been busy. */
export const recordOf = (probe: Answer & { isSqlAnswered: boolean }): RecordedAnswer => ({
  httpStatus: probe.httpStatus === 0 ? null : probe.httpStatus,
  isSqlOk: probe.isSqlAnswered ? probe.isSqlOk : null,
});

/**
 * The parts of a restored site, HTTP and SQL, that answer worse than the record allows. A part that failed when the
 * backup was taken may fail again, but it must answer. Any other part must work.
 */
export function failedOf(probe: Answer & { isSqlAnswered: boolean }, recorded: RecordedAnswer): Array<'HTTP' | 'SQL'> {
  const isPageAllowed = isGoodPage(probe.httpStatus) || (probe.httpStatus >= 500 && failedHttp(recorded));
  const isSqlAllowed = probe.isSqlOk || (probe.isSqlAnswered && recorded.isSqlOk === false);
  return [...(isPageAllowed ? [] : ['HTTP' as const]), ...(isSqlAllowed ? [] : ['SQL' as const])];
}

/**
 * Whether the answer may be transient. A 503 may come from a busy host. But if the recorded answer is a server error, a
 * 503 counts as the site's own answer.
 */
export const mayBeTransient = ({ httpStatus }: Answer, recorded: RecordedAnswer): boolean =>
  httpStatus === 503 && !failedHttp(recorded);

const failedHttp = ({ httpStatus }: RecordedAnswer): boolean => httpStatus !== null && !isGoodPage(httpStatus);

/**
 * The record for the probe after a restore of only the files. The database stays, so SQL is judged by `before`, the
 * answer before the restore. The page may fail if it failed in `before` or in `recorded`, the record of the backup.
 */
export const withDatabaseOf = (before: RecordedAnswer, recorded: RecordedAnswer): RecordedAnswer => ({
  httpStatus: (failedHttp(before) ? before : recorded).httpStatus,
  isSqlOk: before.isSqlOk,
});

/** The record in words for people, in the form of `outcomeOf`. */
export function textOfRecord({ httpStatus, isSqlOk }: RecordedAnswer): string {
  const sql = isSqlOk === null ? 'not on record' : isSqlOk ? 'works' : 'refused';
  return `HTTP: ${httpStatus ?? 'not on record'}; SQL: ${sql}`;
}

/**
 * Tells in a preflight which answers the probe after the restore will accept. Without a record there is no finding,
 * although the restored site must serve then.
 */
export function findingsOfRecord(recorded: RecordedAnswer, httpAccepted?: string): Finding[] {
  if (recorded.httpStatus === null && recorded.isSqlOk === null) return [];
  const http =
    httpAccepted ?? (failedHttp(recorded) ? 'HTTP may answer a server error again' : 'HTTP must answer below 500');
  const sql = recorded.isSqlOk === false ? 'SQL may be refused again' : 'SQL must work';
  const level = failedHttp(recorded) || recorded.isSqlOk === false ? 'WARNING' : 'INFO';
  const detail =
    `How the site answered when this was taken: ${textOfRecord(recorded)}. ` + `After the restore ${http} and ${sql}.`;
  return [{ level, code: 'answer_on_record', detail }];
}
