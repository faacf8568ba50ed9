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
  /** The folder of its tsconfig.json. */
  project: string;
  sources: readonly string[];
  say: (line: string) => void;
  /** Called after the first compilation, even with errors, and after every later compilation without type errors. */
  onCompiled?: () => void;
}

/** An editor writes a file in several steps, so the compiler waits for this time. */
const quietMs = 100;
const stopTimeoutMs = 5_000;

/** Tells whether the compiler reads a file. An editor's own files, such as `.port.ts.swp`, start no compilation. */
const isSource = (file: string): boolean => file.endsWith('.ts');
/**
 * Returns when the file was written. A deleted file counts as new, because the compiler notices a deletion by itself.
 */
const writtenAtMs = (file: string): number =>
  fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;

/**
 * Compiles a project whenever a file of `sources` changes, and shows every type error. With a type error the compiler
 * writes nothing (`noEmitOnError`), so a running process keeps the last code without errors. TypeScript 7's watch mode
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
    // The event `close` comes after all output was read and the compiler's own processes have ended. Until then those
    // processes may still write files.
    const [code]: (number | null)[] = await once(compiler.process, 'close');
    if (stopping.signal.aborted) return;
    if (code !== 0) say(`${output.trimEnd()}\n${name} has type errors: it goes on with the last code that had none`);
    else if (hadErrors) say(`${name} has no type errors any more`);
    hadErrors = code !== 0;
    if (code === 0 || compiledAtMs === 0) onCompiled?.();
  }

  /**
   * Runs one compiler at a time. `tsc -b` assumes that a file older than its output is compiled. A file that was
   * written during the last compilation may be older than the output and still not compiled. The next compiler then
   * compiles everything again.
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
