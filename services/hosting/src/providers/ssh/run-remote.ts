import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ClientChannel } from 'ssh2';
import { type RefusedContent, SiteHostError, type SiteHostRefusal } from '../site-host';
import type { SshConnection } from './ssh-connection';

/** Aborts a call if no data has moved for some time. */
interface SilenceWatch {
  signal: AbortSignal;
  /** Call it whenever data has moved. */
  heard(): void;
  end(): void;
}

/** `reason` makes the error of the aborted call. */
function watchSilence(silenceMs: number, reason: () => Error): SilenceWatch {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(reason()), silenceMs);
  return { signal: controller.signal, heard: () => void timer.refresh(), end: () => clearTimeout(timer) };
}

/** The exit codes of the scripts that mean a permanent refusal. */
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
 * Errors of a dump that every attempt would meet. Others may come from a lock, a limit or a table that was just
 * dropped.
 */
const unreadable = new RegExp(
  'query would be affected by row-level security|permission denied|must be owner of|invalid byte sequence|' +
    'invalid internal value for enum|invalid memory alloc request|' +
    String.raw`\((?:1142|1143|1227|1356|1449)\)|error: (?:1142|1143|1227|1356|1449):`,
);

/** The object that the tools name, and the server's message about it. */
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

/** A command on the host failed for a transient reason. */
export class RemoteError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'RemoteError';
  }
}

/** Whether the database has answered the failed command, however badly. A lost connection or server is no answer. */
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
  /** Gets each line of stderr. */
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
  /** Resolves with null once the command has taken all input, or with the error that stopped it. Never rejects. */
  done: Promise<unknown>;
  /** The error that `input` itself has thrown. It says nothing about the host. */
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
    // The exit code tells why a command ended before it had read all its input.
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

/** Resolves with the end of a command's output. @throws the errors of {@link streamRemote} */
export async function runRemote(connection: SshConnection, call: RemoteCall): Promise<string> {
  let output = '';
  for await (const piece of streamRemote(connection, call))
    output = (output + piece.toString('utf8')).slice(-keptOutputChars);
  return output;
}
