import { once } from 'node:events';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type GuardedChild, spawnGuarded } from '@drydock/process';
import { type SubscribeCallback, subscribe } from '@parcel/watcher';
import { inRepo } from './dev-config';

export interface TypeWatch {
  stop(): Promise<void>;
}

export interface TypeWatchOptions {
  name: string;
  /** The folder of the project's tsconfig.json. */
  project: string;
  sources: readonly string[];
  say: (line: string) => void;
  /** Called after the first compilation, even with errors, and after every later compilation without type errors. */
  onCompiled?: () => void;
}

/** The pause before a compilation, in milliseconds, because an editor may write a file in several steps. */
const quietMs = 100;
const stopTimeoutMs = 5_000;

/** Tells whether a change of the file starts a compilation. An editor's own files, such as `.port.ts.swp`, do not. */
const isSource = (file: string): boolean => file.endsWith('.ts');
/**
 * Returns when the file was written, or infinity for a deleted file. A deletion needs no `--force`, because `tsc -b`
 * notices it.
 */
const writtenAtMs = (file: string): number =>
  fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;

/**
 * Compiles a project whenever a file below `sources` changes, and prints every type error with `say`. With a type error
 * the compiler writes nothing (`noEmitOnError`), so the last code without errors stays. The watch mode of TypeScript 7
 * is not used, because it misses changes. Node's recursive `fs.watch` is not used either, because it loses a file that
 * an editor has replaced by a rename.
 */
export async function watchTypes({ name, project, sources, say, onCompiled }: TypeWatchOptions): Promise<TypeWatch> {
  const stopping = new AbortController();
  let compiler: GuardedChild | undefined;
  let hadErrors = false;
  let compiling: Promise<void> | undefined;
  let isWanted = false;
  let compiledAtMs = 0;
  const changed = new Set<string>();

  async function compileOnce(isWhole: boolean): Promise<void> {
    compiler = await spawnGuarded(
      inRepo('node_modules/.bin/tsc'),
      ['-b', '--pretty', 'false', ...(isWhole ? ['--force'] : [])],
      {
        cwd: project,
        stdio: ['ignore', 'pipe', 'inherit'],
        signalOnOrphan: 'SIGTERM',
        isWrapper: true,
      },
    );
    let output = '';
    compiler.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    // The event `close` comes when all output was read and the compiler's child processes have ended. The child
    // processes may write files until they end.
    const [code]: (number | null)[] = await once(compiler.process, 'close');
    if (stopping.signal.aborted) return;
    if (code !== 0) say(`${output.trimEnd()}\n${name} has type errors: it goes on with the last code that had none`);
    else if (hadErrors) say(`${name} has no type errors any more`);
    hadErrors = code !== 0;
    if (code === 0 || compiledAtMs === 0) onCompiled?.();
  }

  /**
   * Runs one compiler at a time. `tsc -b` skips a file that is older than its output. A file that was saved during the
   * last compilation can be older than its output although the compiler read its earlier text. In this case the next
   * compilation compiles everything (`--force`).
   */
  async function compileWhileWanted(): Promise<void> {
    while (isWanted) {
      await sleep(quietMs);
      if (stopping.signal.aborted) return;
      isWanted = false;
      const isWhole = [...changed].some((file) => writtenAtMs(file) <= compiledAtMs);
      changed.clear();
      await compileOnce(isWhole).catch((error: unknown) => say(`The compiler does not start: ${String(error)}`));
      compiledAtMs = Date.now();
    }
    compiling = undefined;
  }

  const compile = (files: readonly string[]): void => {
    for (const file of files) changed.add(file);
    isWanted = true;
    compiling ??= compileWhileWanted();
  };

  const tell = (folder: string): SubscribeCallback => {
    return (error, events) => {
      if (error !== null) return say(`Changes of ${folder} are not seen: ${error.message}`);
      const files = events.map((event) => event.path).filter(isSource);
      if (files.length > 0) compile(files);
    };
  };
  const watchers = await Promise.all(
    sources.map((folder) => subscribe(folder, tell(folder), { ignore: ['**/*.test.ts'] })),
  );
  compile([]);
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all(watchers.map((watcher) => watcher.unsubscribe()));
      await compiler?.stop('SIGTERM', stopTimeoutMs);
      await compiling;
    },
  };
}
