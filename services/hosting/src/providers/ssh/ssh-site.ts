import { createHash } from 'node:crypto';
import type { SiteRef } from '../site-host';
import { type DatabaseEngine, movingScripts, type RemoteScript, textOfScript } from './remote-scripts';
import { type RemoteCall, runRemote, streamRemote } from './run-remote';
import type { SshConfig, SshTools } from './ssh-connection';

/** Quotes one word for a POSIX shell, whatever is in it. Throws for NUL, which no argument can hold. */
function quoteArgument(argument: string): string {
  if (argument.includes('\0')) throw new Error('NUL in an argument of a remote command');
  return `'${argument.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * The command line for a constant script. The arguments reach it as $1, $2, …, so the shell never parses them. After
 * `limitSeconds` the host itself ends the command and all that it has started, because a lost connection ends nothing
 * on the host.
 */
export const remoteCommand = (script: string, args: readonly string[], limitSeconds: number): string =>
  ['timeout', '--kill-after=5', String(limitSeconds), 'sh', '-c', script, 'drydock', ...args]
    .map(quoteArgument)
    .join(' ');

/** The database server of a host. Address and port are those on the host itself. */
interface DatabaseServer {
  engine: DatabaseEngine;
  host: string;
  port: string;
  user: string;
  password: string;
}

const defaultPort: Readonly<Record<DatabaseEngine, string>> = { postgres: '5432', mysql: '3306' };

export function databaseServerOf({ database_admin_url: url }: Pick<SshConfig, 'database_admin_url'>): DatabaseServer {
  const { protocol, hostname, port, username, password } = new URL(url);
  const engine = protocol.startsWith('postgres') ? 'postgres' : 'mysql';
  return {
    engine,
    // The programs of the database take an IPv6 address without brackets.
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? defaultPort[engine] : port,
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

const word = /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/;
const fencePattern = /^\d{1,18}$/;

/**
 * In seconds. After `total` the host ends a script, after `silence` without a byte this process gives up. `silence` is
 * long where data moves, because a database builds a large index without any output.
 */
const limits = { short: { total: 60, silence: 75 }, moving: { total: 6 * 3_600, silence: 1_800 } } as const;

function requireWord(value: string, what: string): string {
  if (!word.test(value)) throw new Error(`${what} cannot be a name on the host`);
  return value;
}

/** 112 bits, so that a name with its prefix has at most the 32 characters that MySQL allows for a user. */
const hashOf = (...parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('/')).digest('hex').slice(0, 28);

/** The role of the site. It may connect only to the databases of the site. */
export const roleOf = ({ mode, siteId }: SiteRef): string => `s_${hashOf(mode, siteId)}`;

/**
 * The database of a release that is staged with files and data. A release that is staged with files alone shares the
 * database of the current one, so release.json tells which database a release really has.
 */
export const databaseOf = ({ mode, siteId }: SiteRef, releaseId: string): string =>
  `d_${hashOf(mode, siteId)}_${hashOf(releaseId)}`;

export const urlOf = ({ public_url_template: template }: SshConfig, { mode, siteId }: SiteRef): string =>
  template.replaceAll('{site_id}', siteId).replaceAll('{mode}', mode);

export interface SiteCall {
  script: RemoteScript;
  site: SiteRef;
  /** '0' (the default) for a call that changes nothing. */
  fence?: string;
  releaseId?: string;
  args?: readonly string[];
  /** The input after the password of the administrator. */
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
  const { engine, host, port, user, password } = databaseServerOf(config);
  const place = [config.sites_dir, requireWord(site.mode, 'the mode'), requireWord(site.siteId, 'the site'), fence];
  const { total, silence } = movingScripts.has(script) ? limits.moving : limits.short;
  const words = [...place, host, port, user, roleOf(site), requireWord(releaseId, 'the release'), ...args];
  return {
    command: remoteCommand(textOfScript(engine, script), words, total),
    input: inputOf(password, input),
    silenceMs: silence * 1_000,
    signal,
    ...(onErrorLine === undefined ? {} : { onErrorLine }),
  };
}

/** Runs a script for a site. Resolves with its output. @throws SiteHostError, RemoteError */
export const runOnSite = async (tools: SshTools, call: SiteCall): Promise<string> =>
  runRemote(tools.connection, remoteCallOf(tools, call));

/** Like {@link runOnSite}, but yields the output as it comes, and ends only once the script has succeeded. */
export const streamFromSite = (tools: SshTools, call: SiteCall): AsyncGenerator<Buffer> =>
  streamRemote(tools.connection, remoteCallOf(tools, call));
