import fs from 'node:fs';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { type GuardedChild, spawnGuarded } from '@drydock/process/guarded-child';
import { inRepo } from './dev-config';

export interface TypeWatch {
  stop(): Promise<void>;
}

/** An editor writes a file in several steps. */
const quietMs = 100;
const stopTimeoutMs = 5_000;

/**
 * Compiles a project whenever a file of `sources` changes, and shows every type error. The compiler writes nothing while there is one
 * (`noEmitOnError`), so a process that runs the project goes on with the last code that had none, and the developer is told so.
 * It compiles by itself because the watch mode of TypeScript 7 misses changes.
 */
export function watchTypes(name: string, project: string, sources: readonly string[], say: (line: string) => void): TypeWatch {
  const stopping = new AbortController();
  let compiler: GuardedChild | undefined;
  let hadErrors = false;
  let compiling: Promise<void> | undefined;
  let hasChanged = false;

  async function compileOnce(isWhole: boolean): Promise<void> {
    compiler = await spawnGuarded(inRepo('node_modules/.bin/tsc'), ['-b', '--pretty', 'false', ...(isWhole ? ['--force'] : [])], {
      cwd: project,
      stdio: ['ignore', 'pipe', 'inherit'],
      signalOnOrphan: 'SIGTERM',
      isWrapper: true,
    });
    let output = '';
    compiler.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const { code } = await compiler.exited;
    if (stopping.signal.aborted) return;
    if (code !== 0) say(`${output.trimEnd()}\n${name} has type errors: it goes on with the last code that had none`);
    else if (hadErrors) say(`${name} has no type errors any more`);
    hadErrors = code !== 0;
  }

  /**
   * One compiler at a time. A file that changes while it runs may be older than its output, and `tsc -b` would take it for compiled: then
   * the next compiler takes everything anew.
   */
  async function compileWhileChanged(): Promise<void> {
    let isWhole = false;
    while (hasChanged) {
      await sleep(quietMs);
      if (stopping.signal.aborted) return;
      hasChanged = false;
      await compileOnce(isWhole).catch((error: unknown) => say(`The compiler does not start: ${String(error)}`));
      // What the watchers have seen until now was changed while it ran.
      await turn();
      isWhole = hasChanged;
    }
    compiling = undefined;
  }

  const compile = (): void => {
    hasChanged = true;
    compiling ??= compileWhileChanged();
  };

  const watchers = sources.map((folder) => fs.watch(folder, { recursive: true }, compile));
  compile();
  return {
    stop: async () => {
      stopping.abort();
      for (const watcher of watchers) watcher.close();
      await compiler?.stop('SIGTERM', stopTimeoutMs);
      await compiling;
    },
  };
}
