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
  /** Folders whose files are watched. */
  sources: readonly string[];
  say: (line: string) => void;
  /** Called after the first compilation, with or without errors, and after every later one without a type error. */
  onCompiled?: () => void;
}

/** An editor writes a file in several steps. */
const quietMs = 100;
const stopTimeoutMs = 5_000;

/** Files that the compiler reads. Those that an editor keeps beside them, such as `.port.ts.swp`, start nothing. */
const isSource = (file: string): boolean => file.endsWith('.ts');
/** When the file was written. A file that is gone counts as new, because the compiler notices that by itself. */
const writtenAtMs = (file: string): number =>
  fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;

/**
 * Compiles a project whenever a file of `sources` changes, and shows every type error. While there is an error the
 * compiler writes nothing (`noEmitOnError`). A process that runs the project then keeps running the last code without
 * errors, and the developer is told that. This compiles by itself because the watch mode of TypeScript 7 misses
 * changes. It does not use Node's recursive `fs.watch`, which loses a file for good after an editor has replaced it by
 * a rename.
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
    // At `close`, all of its output has been read, and the processes that it started have ended. Until then those may
    // still write.
    const [code]: (number | null)[] = await once(compiler.process, 'close');
    if (stopping.signal.aborted) return;
    if (code !== 0) say(`${output.trimEnd()}\n${name} has type errors: it goes on with the last code that had none`);
    else if (hadErrors) say(`${name} has no type errors any more`);
    hadErrors = code !== 0;
    if (code === 0 || compiledAtMs === 0) onCompiled?.();
  }

  /**
   * One compiler at a time. `tsc -b` thinks that a file which is older than its output is compiled. A file that was
   * written while the last compiler ran may be older than the output and still not be compiled. Then the next compiler
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
