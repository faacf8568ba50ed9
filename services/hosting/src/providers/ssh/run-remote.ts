import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ClientChannel } from 'ssh2';
import type { SshConnection } from './ssh-connection';
import { remoteFailure } from './ssh-errors';

export interface RemoteCall {
  /** Quoted already. */
  command: string;
  input: AsyncIterable<Buffer>;
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

/** What a command writes, as it comes; ends only after the command has succeeded. @throws SiteHostError, RemoteError, the signal's reason */
export async function* streamRemote(
  connection: SshConnection,
  { command, input, signal, onErrorLine }: RemoteCall,
): AsyncGenerator<Buffer> {
  signal?.throwIfAborted();
  const channel = await connection.exec(command);
  const ending = watchEnding(channel, onErrorLine ?? (() => undefined));
  const stop = (): void => void channel.destroy();
  signal?.addEventListener('abort', stop, { once: true });
  // Kept as a value: a command that ends before it has read everything tells why by its exit, which is the better error.
  const feeding = pipeline(Readable.from(input, { objectMode: false }), channel, { end: true, ...(signal && { signal }) }).then(
    () => null,
    (error: unknown) => error,
  );
  try {
    if (signal?.aborted === true) stop();
    for await (const piece of channel.iterator({ destroyOnReturn: false })) yield Buffer.from(piece);
    const { exitCode, errors } = await ending;
    signal?.throwIfAborted();
    if (exitCode !== 0) throw remoteFailure(exitCode, errors);
    const failed = await feeding;
    if (failed !== null) throw failed;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    channel.destroy();
  }
}

/** What a command wrote in the end. @throws as {@link streamRemote} */
export async function runRemote(connection: SshConnection, call: RemoteCall): Promise<string> {
  let output = '';
  for await (const piece of streamRemote(connection, call)) output = (output + piece.toString('utf8')).slice(-keptOutputChars);
  return output;
}
