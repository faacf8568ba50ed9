import { type Copied, copyIn } from '../dump/copy-table';
import { qualify } from '../dump/list-tables';
import type { TableEntry } from '../dump/manifest';
import type { Section } from '../dump/section';
import type { Session } from '../session/session';
import type { TimeBudget } from '../session/time-budget';

export interface LoadProgress {
  tablesLoaded: number;
  tablesTotal: number;
  bytesLoaded: number;
}

/**
 * Fills the tables over as many connections as `sessions`. The next section is asked for while earlier ones are still read: a source that
 * can only give one at a time simply answers later, and the copies then run one after the other. The first error is
 * thrown at once; copies that still run end when the caller closes the sessions.
 */
export async function loadTables(options: {
  tables: TableEntry[];
  /** Where the rows of a table go that is below a hash: see `hashRoots`. */
  roots: ReadonlyMap<string, string>;
  sessions: Session[];
  budget: TimeBudget;
  nextSection: (index: number) => Promise<Section>;
  onProgress: (progress: LoadProgress) => void;
}): Promise<Copied[]> {
  const { tables, roots, budget, nextSection, onProgress } = options;
  const idle = [...options.sessions];
  const running = new Set<Promise<void>>();
  const copied: Copied[] = [];
  const progress: LoadProgress = { tablesLoaded: 0, tablesTotal: tables.length, bytesLoaded: 0 };
  let fail: (error: unknown) => void = () => undefined;
  const failure = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failure.catch(() => undefined);

  const copyOne = async (session: Session, index: number, table: TableEntry, section: Section): Promise<void> => {
    const onBytes = (bytes: number): void => {
      progress.bytesLoaded += bytes;
    };
    copied[index] = await copyIn(session.client, table, section, { onBytes, budget, root: roots.get(qualify(table)) });
    progress.tablesLoaded++;
    onProgress({ ...progress });
    idle.push(session);
  };

  for (const [index, table] of tables.entries()) {
    const section = await Promise.race([failure, nextSection(index)]);
    while (idle.length === 0) await Promise.race([failure, ...running]);
    const session = idle.pop();
    if (session === undefined) throw new Error('no connection although one was idle');
    const task: Promise<void> = copyOne(session, index, table, section)
      .catch(fail)
      .finally(() => running.delete(task));
    running.add(task);
  }
  // First in the list: a task that failed has rejected it before it settled itself.
  await Promise.race([failure, Promise.all(running)]);
  return copied;
}
