import { type RefusedContent, SiteHostError, type SiteHostRefusal } from '../site-host';

/** The exit codes of our scripts for permanent refusals. */
const refusalOfExit: Readonly<Record<number, SiteHostRefusal>> = {
  90: 'stale_fence',
  91: 'moved',
  92: 'current',
  93: 'no_app',
  94: 'restart_blocked',
  95: 'content_not_loaded',
  96: 'content_not_packed',
};

const fullDisk = /No space left on device|Disk quota exceeded|Disk full|ERROR 1114 /;
/** Matches errors of a database server that went away during the load. The dump may be good. */
const lostServer =
  /connection to server|server closed the connection|terminating connection|could not connect|database system is|ERROR (?:1040|1053|1152|1205|1213|1927|2002|2003|2006|2013) /;

/**
 * Matches errors of a dump that are the same at every attempt. Other errors may come from a lock, a limit or a table
 * that was just dropped.
 */
const unreadable =
  /query would be affected by row-level security|permission denied|must be owner of|invalid byte sequence|invalid internal value for enum|invalid memory alloc request|\((?:1142|1143|1227|1356|1449)\)|error: (?:1142|1143|1227|1356|1449):/;

/** The object that the tools name, and the server's own message about it. */
function contentIn(errors: string): RefusedContent {
  const object =
    /from TOC entry \d+; \d+ \d+ (.+) \S+$/m.exec(errors)?.[1] ??
    /Dumping the contents of (table ".+") failed/.exec(errors)?.[1] ??
    null;
  const reason =
    /ERROR:\s+(.+)/.exec(errors)?.[1] ??
    /^ERROR \d+.*$/m.exec(errors)?.[0] ??
    /(?:dump|restore): (.+)/.exec(errors)?.[1];
  return { object, reason: reason ?? 'the database server refuses it' };
}

/** Thrown when a remote command failed for a transient reason. */
export class RemoteError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'RemoteError';
  }
}

/**
 * Whether a command that asks the database got an answer, even a bad one. A lost connection or server is not an answer.
 */
export const isAnswer = (error: unknown): boolean =>
  error instanceof RemoteError && !error.message.includes('a lost connection') && !lostServer.test(error.message);

/** The error for a command that failed. `errors`: the end of its stderr, for the log. */
export function remoteFailure(exitCode: number | null, errors: string): Error {
  const detail = `the host's command ended with ${exitCode ?? 'a lost connection'}: ${errors.trim()}`;
  if (fullDisk.test(errors)) return new SiteHostError('no_space', detail);
  const refusal = exitCode === null ? undefined : refusalOfExit[exitCode];
  if (refusal === undefined) return new RemoteError(detail);
  if (refusal !== 'content_not_loaded' && refusal !== 'content_not_packed') return new SiteHostError(refusal, detail);
  const mayPass = lostServer.test(errors) || (refusal === 'content_not_packed' && !unreadable.test(errors));
  return mayPass ? new RemoteError(detail) : new SiteHostError(refusal, detail, { content: contentIn(errors) });
}
