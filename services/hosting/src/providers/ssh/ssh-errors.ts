import { SiteHostError, type SiteHostRefusal } from '../site-host';

/** What our scripts end with when no repetition can mend it. */
const refusalOfExit: Readonly<Record<number, SiteHostRefusal>> = {
  90: 'stale_fence',
  91: 'moved',
  92: 'current',
  93: 'no_app',
  94: 'restart_blocked',
  95: 'archive_refused',
};

const fullDisk = /No space left on device|Disk quota exceeded|Disk full|ERROR 1114 /;
/** The database server went away under a dump that may be good. */
const lostServer =
  /connection to server|server closed the connection|terminating connection|could not connect|database system is|ERROR (?:1040|1053|1152|1205|1213|1927|2002|2003|2006|2013) /;

/** A remote command that ended with something else than success; it may pass. */
export class RemoteError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'RemoteError';
  }
}

/** What a command's end means. `errors`: the end of what it wrote to stderr, for the log. */
export function remoteFailure(exitCode: number | null, errors: string): Error {
  const detail = `the host's command ended with ${exitCode ?? 'a lost connection'}: ${errors.trim()}`;
  if (fullDisk.test(errors)) return new SiteHostError('no_space', detail);
  const refusal = exitCode === null ? undefined : refusalOfExit[exitCode];
  if (refusal === undefined || (refusal === 'archive_refused' && lostServer.test(errors))) return new RemoteError(detail);
  return new SiteHostError(refusal, detail);
}
