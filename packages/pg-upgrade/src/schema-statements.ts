import { dumpSchema } from '@drydock/pg-transfer/dump-schema';
import { type Statement, splitStatements } from '@drydock/pg-transfer/split-statements';
import { ownSchema, publication } from './own-objects';

/** A schema in the order in which it is made. Positions are stable for one dump, so that what was made is known after a crash. */
export interface SchemaPlan {
  /** Types, functions, tables, views. */
  pre: string[];
  /** Unique keys and replica identities: replication needs them before the first row. */
  keys: string[];
  /** Other indexes, which may be built two at a time once the rows are there. */
  indexes: string[];
  /** Foreign keys, triggers, contents of materialised views, in pg_dump's order. */
  rest: string[];
  /** What would change the rows that arrive by replication, or keep them out; made when no more arrive. */
  late: string[];
}

const isSetting = ({ outline }: Statement): boolean => /^(?:SET |SELECT pg_catalog\.set_config)/i.test(outline);
/** Ours, not the customer's. */
const isOwn = ({ outline }: Statement): boolean => new RegExp(`\\b(?:${ownSchema}|${publication})(?:\\b|_)`).test(outline);
const isLate = ({ outline }: Statement): boolean =>
  /^ALTER TABLE .* (?:(?<!NO )FORCE ROW LEVEL SECURITY|ENABLE (?:ALWAYS|REPLICA) (?:TRIGGER|RULE) )/i.test(outline);
const isKey = ({ outline }: Statement): boolean =>
  /^ALTER TABLE .* (?:ADD CONSTRAINT .* (?:PRIMARY KEY|UNIQUE)\b|REPLICA IDENTITY )/i.test(outline) ||
  /^CREATE UNIQUE INDEX /i.test(outline);
const isIndex = ({ outline }: Statement): boolean => /^CREATE INDEX /i.test(outline);

const read = (sql: string): Statement[] => splitStatements(sql).filter((statement) => !isSetting(statement) && !isOwn(statement));
const textsOf = (statements: Statement[]): string[] => statements.map(({ text }) => text);

/** Reads the schema of the old database, complete with owners and grants. No DDL may run meanwhile. Throws TransferError `dump_failed`. */
export async function planSchema(url: string, signal?: AbortSignal): Promise<SchemaPlan> {
  const request = { url, isComplete: true, excludeSchema: ownSchema, signal };
  const [pre, post] = await Promise.all([
    dumpSchema({ ...request, section: 'pre-data' }),
    dumpSchema({ ...request, section: 'post-data' }),
  ]);
  return sortStatements(read(pre), read(post));
}

export function sortStatements(pre: Statement[], post: Statement[]): SchemaPlan {
  const now = post.filter((statement) => !isLate(statement));
  return {
    pre: textsOf(pre.filter((statement) => !isLate(statement))),
    keys: textsOf(now.filter(isKey)),
    indexes: textsOf(now.filter(isIndex)),
    rest: textsOf(now.filter((statement) => !isKey(statement) && !isIndex(statement))),
    late: textsOf([...pre, ...post].filter(isLate)),
  };
}
