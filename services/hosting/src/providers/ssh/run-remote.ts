import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ClientChannel } from 'ssh2';
import type { SshConnection } from './ssh-connection';
import { RemoteError, remoteFailure } from './ssh-errors';
import { watchSilence } from './watch-silence';

export interface RemoteCall {
  /** Quoted already. */
  command: string;
  input: AsyncIterable<Buffer>;
  /** The time without a byte in either direction after which the host counts as hanging. */
  silenceMs: number;
  signal?: AbortSignal | undefined;
  /** Told of each line on stderr. */
  onErrorLine?: (line: string) => void;
}

const keptErrorChars = 2_000;
const keptOutputChars = 1_000_000;

interface Ending {
  exitCode: number | null;
  errors: string;
}

/** Resolves when the channel has closed; never rejects. */
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
  /** Resolves with the reason why the input was not taken completely; null if it was. Never rejects. */
  done: Promise<unknown>;
  /** The error of our own input. It says nothing about what the host thinks of the archive. */
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
    // If a command ended before it had read everything, its exit code has the real reason.
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

/** The end of a command's output. @throws as {@link streamRemote} */
export async function runRemote(connection: SshConnection, call: RemoteCall): Promise<string> {
  let output = '';
  for await (const piece of streamRemote(connection, call))
    output = (output + piece.toString('utf8')).slice(-keptOutputChars);
  return output;
}
