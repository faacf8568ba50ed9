import { createHash } from 'node:crypto';
import type { SiteRef } from '../site-host';
import { remoteCommand } from './quote-argument';
import type { remoteScripts } from './remote-scripts';
import { type RemoteCall, runRemote, streamRemote } from './run-remote';
import type { SshConfig, SshTools } from './ssh-tools';

const word = /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/;
const fencePattern = /^\d{1,18}$/;

function requireWord(value: string, what: string): string {
  if (!word.test(value)) throw new Error(`${what} cannot be a name on the host`);
  return value;
}

const hashOf = (parts: readonly string[]): string => createHash('sha256').update(parts.join('/')).digest('hex').slice(0, 40);

/** The site's own role: it may connect to its own databases and nothing else. */
export const roleOf = ({ mode, siteId }: SiteRef): string => `s_${hashOf([mode, siteId])}`;

/** Each release has a database of its own, whose name follows from it. */
export const databaseOf = ({ mode, siteId }: SiteRef, releaseId: string): string => `d_${hashOf([mode, siteId, releaseId])}`;

export const urlOf = ({ public_url_template: template }: SshConfig, { mode, siteId }: SiteRef): string =>
  template.replaceAll('{site_id}', siteId).replaceAll('{mode}', mode);

export interface SiteCall {
  script: (typeof remoteScripts)[keyof typeof remoteScripts];
  site: SiteRef;
  /** '0' for a call that changes nothing. */
  fence?: string;
  releaseId?: string;
  args?: readonly string[];
  /** After the administrator's password. */
  input?: AsyncIterable<Buffer>;
  signal?: AbortSignal | undefined;
  onErrorLine?: (line: string) => void;
}

async function* inputOf(password: string, more: AsyncIterable<Buffer> | undefined): AsyncGenerator<Buffer> {
  yield Buffer.from(`${password}\n`);
  if (more !== undefined) yield* more;
}

function remoteCallOf({ config }: SshTools, call: SiteCall): RemoteCall {
  const { script, site, fence = '0', releaseId = 'none', args = [], input, signal, onErrorLine } = call;
  if (!fencePattern.test(fence)) throw new Error('a fence is a number');
  const admin = new URL(config.database_admin_url);
  const place = [config.sites_dir, requireWord(site.mode, 'the mode'), requireWord(site.siteId, 'the site'), fence];
  const server = [admin.hostname, admin.port === '' ? '5432' : admin.port, decodeURIComponent(admin.username)];
  return {
    command: remoteCommand(script, [...place, ...server, roleOf(site), requireWord(releaseId, 'the release'), ...args]),
    input: inputOf(decodeURIComponent(admin.password), input),
    signal,
    ...(onErrorLine === undefined ? {} : { onErrorLine }),
  };
}

/** One script about one site; resolves with what it wrote. @throws SiteHostError, RemoteError */
export const runOnSite = async (tools: SshTools, call: SiteCall): Promise<string> => runRemote(tools.connection, remoteCallOf(tools, call));

/** The same as a stream that ends only after the script has succeeded. */
export const streamFromSite = (tools: SshTools, call: SiteCall): AsyncGenerator<Buffer> =>
  streamRemote(tools.connection, remoteCallOf(tools, call));
