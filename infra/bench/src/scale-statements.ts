import pg from 'pg';
import { median } from './measure';

interface Statement {
  text: string;
  calls: number;
  /** The milliseconds of each call, until pg has the result. */
  ms: number[];
  rows: number;
  /** The plan of the first call: the indexes that it uses, and the tables that it reads whole. */
  plan: string;
}

export interface Recorder {
  /** Runs `work`. Resolves with its statements, ordered by the median of their times, the slowest first. */
  record(work: () => Promise<unknown>): Promise<Statement[]>;
}

interface Plan {
  'Node Type': string;
  'Index Name'?: string;
  'Relation Name'?: string;
  Plans?: Plan[];
}

const scansOf = (plan: Plan): string[] => {
  const below = (plan.Plans ?? []).flatMap(scansOf);
  if (plan['Node Type'] === 'Seq Scan') return [`Seq Scan of ${plan['Relation Name']}`, ...below];
  return plan['Index Name'] === undefined ? below : [plan['Index Name'], ...below];
};

interface Asked {
  text: string;
  values?: unknown[];
}

const isStatement = ({ text }: Asked): boolean => /^\s*\(?\s*(select|with|insert|update|delete)/i.test(text);

type Query = (this: pg.Client, ...args: unknown[]) => unknown;

/**
 * Creates a recorder for the statements of this process. It replaces the method `query` of pg.Client, because Prisma
 * and plain pg both use that class.
 */
export function createRecorder(): Recorder {
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  let seen: Map<string, Statement> | undefined;
  prototype.query = function record(...args) {
    const into = seen;
    const [config, given] = args;
    const asked: Asked =
      typeof config === 'string' ? { text: config, values: Array.isArray(given) ? given : [] } : (config as Asked);
    const values = asked.values ?? (Array.isArray(given) ? given : []);
    if (
      into === undefined ||
      typeof args.at(-1) === 'function' ||
      typeof asked.text !== 'string' ||
      !isStatement(asked)
    )
      return Reflect.apply(query, this, args);
    const run = async (): Promise<unknown> => {
      const known = into.get(asked.text) ?? {
        text: asked.text,
        calls: 0,
        ms: [],
        rows: 0,
        plan: await explain(this, asked.text, values),
      };
      into.set(asked.text, known);
      const begun = performance.now();
      const result = (await Reflect.apply(query, this, args)) as pg.QueryResult;
      known.ms.push(performance.now() - begun);
      known.calls += 1;
      known.rows += result.rowCount ?? 0;
      return result;
    };
    return run();
  };
  const explain = async (client: pg.Client, text: string, values: unknown[]): Promise<string> => {
    const { rows } = (await Reflect.apply(query, client, [`EXPLAIN (FORMAT JSON) ${text}`, values])) as pg.QueryResult<{
      'QUERY PLAN': Array<{ Plan: Plan }>;
    }>;
    const scans = rows[0]?.['QUERY PLAN'].flatMap(({ Plan: plan }) => scansOf(plan)) ?? [];
    return [...new Set(scans)].join(', ');
  };
  return {
    record: async (work) => {
      const statements = new Map<string, Statement>();
      seen = statements;
      try {
        await work();
      } finally {
        seen = undefined;
      }
      return [...statements.values()].sort((left, right) => middle(right.ms) - middle(left.ms));
    },
  };
}

/** Returns the median of the values, without the first value if their number is even. */
export const middle = (values: readonly number[]): number => median(values.length % 2 === 0 ? values.slice(1) : values);
