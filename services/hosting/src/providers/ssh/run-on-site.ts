import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ClientChannel } from 'ssh2';
import { type RefusedContent, SiteHostError, type SiteHostRefusal, type SiteRef } from '../site-host';
import { type DatabaseEngine, movingScripts, type RemoteScript, textOfScript } from './remote-scripts';
import type { SshConfig, SshConnection, SshTools } from './ssh-connection';

/** Aborts a call if no data has moved for some time. */
interface SilenceWatch {
  signal: AbortSignal;
  /** Call it whenever data has moved. */
  heard(): void;
  end(): void;
}

/** Aborts the signal with the error that `reason` makes. */
function watchSilence(silenceMs: number, reason: () => Error): SilenceWatch {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(reason()), silenceMs);
  return { signal: controller.signal, heard: () => void timer.refresh(), end: () => clearTimeout(timer) };
}

/** The exit codes with which the scripts refuse. {@link remoteFailure} decides whether 95 and 96 are permanent. */
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
/** Errors of a database server that went away. They say nothing about the dump. */
const lostServer = new RegExp(
  'connection to server|server closed the connection|terminating connection|could not connect|' +
    'database system is|ERROR (?:1040|1053|1152|1205|1213|1927|2002|2003|2006|2013) ',
);

/**
 * Errors of a dump that every attempt would meet. Any other error may come from a lock, a limit or a table that was
 * just dropped.
 */
const unreadable = new RegExp(
  'query would be affected by row-level security|permission denied|must be owner of|invalid byte sequence|' +
    'invalid internal value for enum|invalid memory alloc request|' +
    String.raw`\((?:1142|1143|1227|1356|1449)\)|error: (?:1142|1143|1227|1356|1449):`,
);

/** The object that the database's programs name in their errors, and the server's message about it. */
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

/** A command on the host failed, and another attempt may succeed. */
export class RemoteError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'RemoteError';
  }
}

/**
 * Whether the database itself has refused the failed command. A lost connection or a server that went away is no
 * answer.
 */
export const isAnswer = (error: unknown): boolean =>
  error instanceof RemoteError && !error.message.includes('a lost connection') && !lostServer.test(error.message);

/** The error for a command that failed. `errors` is the end of the command's stderr. */
export function remoteFailure(exitCode: number | null, errors: string): Error {
  const detail = `the host's command ended with ${exitCode ?? 'a lost connection'}: ${errors.trim()}`;
  if (fullDisk.test(errors)) return new SiteHostError('no_space', detail);
  const refusal = exitCode === null ? undefined : refusalOfExit[exitCode];
  if (refusal === undefined) return new RemoteError(detail);
  if (refusal !== 'content_not_loaded' && refusal !== 'content_not_packed') return new SiteHostError(refusal, detail);
  const mayPass = lostServer.test(errors) || (refusal === 'content_not_packed' && !unreadable.test(errors));
  return mayPass ? new RemoteError(detail) : new SiteHostError(refusal, detail, { content: contentIn(errors) });
}

export interface RemoteCall {
  /** The command line. Every word is quoted already. */
  command: string;
  input: AsyncIterable<Buffer>;
  /** After this time without a byte in either direction the host counts as hanging. */
  silenceMs: number;
  signal?: AbortSignal | undefined;
  onErrorLine?: (line: string) => void;
}

const keptErrorChars = 2_000;
const keptOutputChars = 1_000_000;

interface Ending {
  exitCode: number | null;
  errors: string;
}

/** Resolves once the channel has closed. Never rejects. */
function watchEnding(channel: ClientChannel, onErrorLine: (line: string) => void): Promise<Ending> {
  let errors = '';
  let rest = '';
  channel.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-keptErrorChars);
    const lines = (rest + text).split('\n');
    rest = (lines.pop() ?? '').slice(-keptErrorChars);
    for (const line of lines) onErrorLine(line);
  });
  return new Promise((resolve) => {
    let exitCode: number | null = null;
    channel.on('exit', (code: number | null) => {
      exitCode = code;
    });
    channel.on('error', () => undefined);
    channel.on('close', () => resolve({ exitCode, errors }));
  });
}

interface Feeding {
  /** Resolves with null once the command has taken all input, or with the error that stopped the input. */
  done: Promise<unknown>;
  /** The error that `input` itself has thrown, which says nothing about the host. Null if it has thrown none. */
  sourceError(): unknown;
}

function feed(channel: ClientChannel, input: AsyncIterable<Buffer>, signal: AbortSignal, onTaken: () => void): Feeding {
  let failed: { error: unknown } | null = null;
  async function* watched(): AsyncGenerator<Buffer> {
    try {
      for await (const piece of input) {
        yield piece;
        onTaken();
      }
    } catch (error) {
      failed = { error };
      throw error;
    }
  }
  const done = pipeline(Readable.from(watched(), { objectMode: false }), channel, { end: true, signal }).then(
    () => null,
    (error: unknown) => error,
  );
  return { done, sourceError: () => failed?.error ?? null };
}

/**
 * Yields the output of a command as it comes, and ends only after the command has succeeded.
 * @throws SiteHostError, RemoteError, the signal's reason, what `input` throws
 */
export async function* streamRemote(connection: SshConnection, call: RemoteCall): AsyncGenerator<Buffer> {
  const silence = watchSilence(
    call.silenceMs,
    () => new RemoteError(`the host was silent for ${call.silenceMs / 1_000} s`),
  );
  const signal = call.signal === undefined ? silence.signal : AbortSignal.any([call.signal, silence.signal]);
  try {
    signal.throwIfAborted();
    const channel = await connection.exec(call.command, signal);
    yield* outputOf(channel, call, signal, silence.heard);
  } finally {
    silence.end();
  }
}

async function* outputOf(
  channel: ClientChannel,
  { input, onErrorLine }: RemoteCall,
  signal: AbortSignal,
  heard: () => void,
): AsyncGenerator<Buffer> {
  const ending = watchEnding(channel, onErrorLine ?? (() => undefined));
  const stop = (): void => void channel.destroy();
  signal.addEventListener('abort', stop, { once: true });
  const feeding = feed(channel, input, signal, heard);
  try {
    if (signal.aborted) stop();
    for await (const piece of channel.iterator({ destroyOnReturn: false })) {
      heard();
      yield Buffer.from(piece);
    }
    const { exitCode, errors } = await ending;
    // The exit code takes precedence over an error of the input, because it tells why the command did not read all its
    // input.
    if (exitCode !== 0) throw remoteFailure(exitCode, errors);
    const failed = await feeding.done;
    if (failed !== null) throw failed;
  } catch (error) {
    signal.throwIfAborted();
    throw feeding.sourceError() ?? error;
  } finally {
    signal.removeEventListener('abort', stop);
    channel.destroy();
  }
}

/** Resolves with a command's output, cut to its last million characters. @throws the errors of {@link streamRemote} */
export async function runRemote(connection: SshConnection, call: RemoteCall): Promise<string> {
  let output = '';
  for await (const piece of streamRemote(connection, call))
    output = (output + piece.toString('utf8')).slice(-keptOutputChars);
  return output;
}

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
 * Times in seconds. After `total` the host ends a script. After `silence` without a byte this process gives up.
 * `silence` is long where data moves, because a database builds a large index without any output.
 */
const limits = { short: { total: 60, silence: 75 }, moving: { total: 7 * 3_600, silence: 1_800 } } as const;

/** Whether a call accepts the value as the name of a site or a release. */
export const isWord = (value: string): boolean => word.test(value);

function requireWord(value: string, what: string): string {
  if (!isWord(value)) throw new Error(`${what} cannot be a name on the host`);
  return value;
}

/** 112 bits in hex, so that the name of a role fits into the 32 characters that MySQL allows for a user. */
const hashOf = (...parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('/')).digest('hex').slice(0, 28);

/** The site's role in the database server of the host. */
export const roleOf = ({ mode, siteId }: SiteRef): string => `s_${hashOf(mode, siteId)}`;

/**
 * The name of the database that is made for a release. A release that is staged with files alone has the database of
 * another release, so release.json tells which database a release really has.
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
