import { timeLimit } from '@drydock/process';
import pg from 'pg';
import { z } from 'zod';
import { openSession } from '../../session/session';
import { isPermanentForReader, isPermanentSqlState, sqlStateOf } from '../../session/transfer-error';
import { dropTransferRole, loginUrl, makeLoader, type TransferLogin } from '../../session/transfer-roles';
import { readRows } from '../session';
import { type PrecheckRequest, withReader } from './prechecks';
import { type Finding, remedyFor } from './prechecks.rules';
import { type RowQuestion, readQuestions } from './row-questions';

export interface RowLimits {
  /** The time limit of a question. */
  statementMs: number;
  /** The time limit of all questions. After the limit no further question is asked. */
  totalMs: number;
  /** The disk space in kB for sorting keys on the serving instance. */
  tempFileKb: number;
}

const defaultLimits: RowLimits = { statementMs: 10_000, totalMs: 30_000, tempFileKb: 1_048_576 };
/** Code that ignores its time limit is ended after this further time. */
const graceMs = 2_000;
/** A question waits only this long for a lock, because a customer's ALTER may wait behind the question. */
const lockMs = 1_000;
const findingsMax = 20;
const namedMax = 50;

export interface RowsRequest extends Pick<PrecheckRequest, 'url' | 'databaseName' | 'toMajor' | 'signal'> {
  limits?: RowLimits;
}

/**
 * Checks the old database's rows against the customer's present functions, as the upgrade will check them: unique and
 * exclusion indexes, partition keys and generated columns. All questions use one snapshot. The customer's code runs as
 * the object's owner in a read-only transaction, and is ended when its time is up. The result of the code is used only
 * in findings.
 */
export function askRows({
  url,
  databaseName,
  toMajor,
  signal,
  limits = defaultLimits,
}: RowsRequest): Promise<Finding[]> {
  const endMs = performance.now() + limits.totalMs;
  return withReader({ url, databaseName, signal, tag: tagOf(databaseName, toMajor) }, async ({ admin, reader }) => {
    await reader.query('begin isolation level repeatable read read only');
    const questions = await questionsOf(reader, limits);
    if (questions === null) return [notChecked(['the whole database'], 'a table is locked')];
    if (questions.length === 0) return [];
    const [exported] = await readRows(reader, snapshotSchema, 'select pg_catalog.pg_export_snapshot() as snapshot');
    const asker = new Asker({
      admin,
      url,
      databaseName,
      tag: tagOf(databaseName, toMajor),
      snapshot: exported?.snapshot ?? '',
      limits,
      signal,
    });
    const answers: Answer[] = [];
    try {
      for (const question of questions) {
        const leftMs = Math.floor(endMs - performance.now());
        answers.push(
          leftMs > 0
            ? await asker.ask(question, Math.min(leftMs, limits.statementMs))
            : unknown(question, 'there was no time left'),
        );
      }
    } finally {
      await asker.close();
    }
    return findingsOf(answers);
  });
}

/**
 * Reads the questions. Returns null if the definitions cannot be read in time, for example while the customer locks a
 * table.
 */
async function questionsOf(reader: pg.Client, { statementMs }: RowLimits): Promise<RowQuestion[] | null> {
  await reader.query(`set local lock_timeout = ${lockMs}`);
  await reader.query(`set local statement_timeout = ${statementMs}`);
  try {
    return await readQuestions(reader);
  } catch (error) {
    if ([timeoutCode, lockCode].includes(String(sqlStateOf(error)))) return null;
    throw error;
  }
}

/**
 * The serving instance limits each process's memory and ends a larger statement. So a question uses one process,
 * whatever the customer has set, and sorts and joins on disk, within `tempFileKb`.
 */
const oneProcess = { max_parallel_workers_per_gather: '0', work_mem: '16MB', hash_mem_multiplier: '1' };

const snapshotSchema = z.object({ snapshot: z.string() });
const tagOf = (databaseName: string, toMajor: number): string => `rows ${databaseName} ${toMajor}`;

interface Answer {
  object: string;
  /** Why the upgrade would fail. If both `refused` and `unknown` are absent, the rows are valid. */
  refused?: string;
  /** Why there is no answer. */
  unknown?: string;
}
const unknown = ({ object }: RowQuestion, why: string): Answer => ({ object, unknown: why });

/**
 * Tells whether the upgrade would certainly fail with the error of a question. A missing right, a refused write or a
 * violated CHECK of a domain may concern only the question. The object may also have been dropped after it was listed.
 */
function isSure(error: unknown): error is pg.DatabaseError {
  const state = String(sqlStateOf(error));
  if (!(error instanceof pg.DatabaseError) || ['42501', '23514'].includes(state) || state.startsWith('25'))
    return false;
  return error.where === undefined ? isPermanentForReader(state) : isPermanentSqlState(state);
}
const timeoutCode = '57014';
const lockCode = '55P03';

interface AskContext {
  /** The superuser's session in `postgres`. */
  admin: pg.Client;
  url: string;
  databaseName: string;
  tag: string;
  /** A snapshot whose transaction stays open. */
  snapshot: string;
  limits: RowLimits;
  signal: AbortSignal | undefined;
}

/** Asks questions. There is one login for each owner, and a new session for each question. */
class Asker {
  private readonly context: AskContext;
  private readonly logins = new Map<string, TransferLogin>();

  constructor(context: AskContext) {
    this.context = context;
  }

  /**
   * Asks a question. An error that does not prove a refusal becomes an unknown answer. Throws if the whole request is
   * aborted.
   */
  async ask(question: RowQuestion, ms: number): Promise<Answer> {
    const { role } = question;
    if (role === null) return unknown(question, 'its owner is no role of the database');
    const late = timeLimit(ms + graceMs);
    try {
      return await this.run(question, role, { ms, late });
    } catch (error) {
      this.context.signal?.throwIfAborted();
      if (!late.aborted && sqlStateOf(error) !== timeoutCode) return unknown(question, reasonOf(error));
      await this.endLogin(role);
      return unknown(question, `it took longer than ${Math.ceil(ms / 1000)} s`);
    }
  }

  async close(): Promise<void> {
    for (const role of [...this.logins.keys()]) await this.endLogin(role);
  }

  /**
   * Runs a question after the session has imported the snapshot. From then on no code can make the transaction
   * writable.
   */
  private async run(
    question: RowQuestion,
    role: string,
    { ms, late }: { ms: number; late: AbortSignal },
  ): Promise<Answer> {
    const { url, databaseName, snapshot, signal } = this.context;
    const { client, close } = await openSession(loginUrl(url, await this.login(role), databaseName), {
      purpose: 'load',
      role,
      limits: { statementMs: ms, lockMs },
      settings: oneProcess,
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    try {
      await client.query('begin isolation level repeatable read read only');
      await client.query(`set transaction snapshot ${pg.escapeLiteral(snapshot)}`);
      // A policy for the owner would hide rows. With this setting Postgres throws an error for such a policy.
      await client.query('set local row_security = off');
      // No index helps here, so a nested loop would take too long.
      await client.query('set local enable_nestloop = off');
      return await answerOf(question, client);
    } finally {
      await close();
    }
  }

  private async login(role: string): Promise<TransferLogin> {
    const known = this.logins.get(role);
    if (known !== undefined) return known;
    const { admin, databaseName: database, tag, limits } = this.context;
    const login = await makeLoader({ admin, database, tag, owner: role });
    this.logins.set(role, login);
    await admin.query(`alter role ${pg.escapeIdentifier(login.role)} set temp_file_limit = '${limits.tempFileKb}kB'`);
    return login;
  }

  private async endLogin(role: string): Promise<void> {
    const login = this.logins.get(role);
    this.logins.delete(role);
    if (login !== undefined) await dropTransferRole(this.context.admin, login.role);
  }
}

async function answerOf({ object, sql, complain }: RowQuestion, client: pg.Client): Promise<Answer> {
  try {
    const { rows } = await client.query(sql);
    return rows.length === 0 ? { object } : { object, refused: complain(rows) };
  } catch (error) {
    if (!isSure(error)) throw error;
    const said = reasonOf(error);
    return {
      object,
      refused: `its functions as they are now fail for rows that are there: ${said}. ${remedyFor(said)}`,
    };
  }
}

const reasonMax = 300;

/** Shortens an error's text, because the customer's code determines its length. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.length > reasonMax ? `${text.slice(0, reasonMax)}…` : text;
}

/**
 * Returns a finding for each refusal, at most `findingsMax`. Unchecked objects with the same reason share a finding,
 * which names them.
 */
function findingsOf(answers: readonly Answer[]): Finding[] {
  const refused = answers.flatMap(({ object, refused: why }) =>
    why === undefined ? [] : [`${object} cannot go over: ${why}`],
  );
  const unchecked = new Map<string, string[]>();
  for (const { object, unknown: why } of answers) {
    if (why === undefined) continue;
    const reason = unchecked.has(why) || unchecked.size < findingsMax ? why : 'other reasons';
    unchecked.set(reason, [...(unchecked.get(reason) ?? []), object]);
  }
  return [
    ...refused.slice(0, findingsMax).map((detail): Finding => ({ level: 'ERROR', code: 'rows_refused', detail })),
    ...[...unchecked].map(([why, objects]) => notChecked(objects, why)),
  ];
}

function notChecked(objects: readonly string[], why: string): Finding {
  const more = objects.length > namedMax ? ` and ${objects.length - namedMax} more` : '';
  const names = `${objects.slice(0, namedMax).join(', ')}${more}`;
  const otherwise = 'Where they do not, the upgrade ends before its switch and the database serves on.';
  const detail = `Whether the rows fit the functions as they are now is not known of ${names}: ${why}. ${otherwise}`;
  return { level: 'WARNING', code: 'not_checked', detail };
}
