import { randomBytes } from 'node:crypto';
import { signInternalToken, tokenKey } from '@drydock/service-kit/internal-token';
import { Pool } from 'undici';
import { z } from 'zod';
import { DatabaseHostError, isDatabaseHostErrorCode } from './database-host-error';
import {
  type Access,
  accessSchema,
  type CutoverAnswer,
  controlParties,
  cutoverAnswerSchema,
  type DatabaseDescription,
  databaseDescriptionSchema,
  type EnsureDatabase,
  errorAnswerSchema,
  judgementSchema,
  type PrepareTarget,
  type ScratchAccess,
  scratchAccessSchema,
  type UpgradeAccess,
  type UpgradeJudgement,
  upgradeAccessSchema,
} from './protocol';

/** The workflow's claim: every change carries it, and an older one than the host has seen is refused. */
export interface Claim {
  fence: string;
  workflowId?: string;
  signal?: AbortSignal;
}

type Wanted<Body> = Omit<Body, 'fence' | 'workflow_id'>;

/** What the control protocol can do; see the README of this package. Every change is idempotent under its fence. */
export interface DatabaseHostClient {
  ensureDatabase(databaseId: string, wanted: Wanted<EnsureDatabase>, claim: Claim): Promise<DatabaseDescription>;
  /** `unknown_database` also for one that was never finished. */
  readDatabase(databaseId: string, signal?: AbortSignal): Promise<DatabaseDescription>;
  destroyDatabase(databaseId: string, claim: Claim): Promise<void>;
  precheck(databaseId: string, toMajor: number, signal?: AbortSignal): Promise<UpgradeJudgement>;
  /** To the instance that serves, by the platform's role. Secret. */
  access(databaseId: string, claim: Claim): Promise<Access>;
  prepareTarget(databaseId: string, wanted: Wanted<PrepareTarget>, claim: Claim): Promise<void>;
  /** To both instances of an upgrade, by the platform's role. Secret. */
  accessUpgrade(databaseId: string, upgradeId: string, claim: Claim): Promise<UpgradeAccess>;
  blockWrites(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  /** The point of no return; see switch-over.ts. */
  cutover(databaseId: string, upgradeId: string, claim: Claim): Promise<CutoverAnswer>;
  restOld(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  retireOld(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  abandonUpgrade(databaseId: string, upgradeId: string, claim: Claim): Promise<void>;
  makeScratch(databaseId: string, wanted: { scratchId: string; major: number }, claim: Claim): Promise<ScratchAccess>;
  dropScratch(databaseId: string, scratchId: string, claim: Claim): Promise<void>;
  close(): Promise<void>;
}

interface Call<Answer> {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  answer: z.ZodType<Answer>;
  signal?: AbortSignal | undefined;
}

/** Making an instance takes a second or two, under load ten; ending one in order at most twenty. */
const deadlineMs = 90_000;
const nothing = z.undefined();

/**
 * The typed client of a database host's control protocol. Every method throws {@link DatabaseHostError}: the host's refusals by their codes, and `unreachable` for a
 * lost connection, an answer that is none or a deadline of 90 s; then nobody knows whether a change was made, and since all are idempotent under a fence it may be
 * sent again. An abort of the caller's signal is thrown as it is.
 */
export function createDatabaseHostClient(options: { url: string; secret: string }): DatabaseHostClient {
  const pool = new Pool(options.url, { connections: 16, connectTimeout: 5_000, headersTimeout: deadlineMs, bodyTimeout: deadlineMs });
  const key = tokenKey(options.secret);

  const call = async <Answer>({ method, path, body, answer, signal }: Call<Answer>): Promise<Answer> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const bound = { requestId: randomBytes(12).toString('hex'), method, path, ...(text === undefined ? {} : { body: Buffer.from(text) }) };
    const headers = { authorization: `Bearer ${signInternalToken(key, controlParties, bound)}`, 'content-type': 'application/json' };
    const deadline = AbortSignal.any([AbortSignal.timeout(deadlineMs), ...(signal ? [signal] : [])]);
    try {
      const response = await pool.request({ method, path, headers, signal: deadline, ...(text === undefined ? {} : { body: text }) });
      const answered: unknown = response.statusCode === 204 ? undefined : JSON.parse(await response.body.text());
      if (response.statusCode >= 300) throw refusalOf(answered);
      return answer.parse(answered);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof DatabaseHostError) throw error;
      throw new DatabaseHostError('unreachable', error instanceof Error ? error.message : String(error), { cause: error });
    }
  };
  const pathOf = (databaseId: string, rest = ''): string => `/control/databases/${encodeURIComponent(databaseId)}${rest}`;
  const change = <Answer>(method: Call<Answer>['method'], path: string, answer: z.ZodType<Answer>, claim: Claim, fields: object = {}) =>
    call({ method, path, answer, body: { ...fields, fence: claim.fence, workflow_id: claim.workflowId }, signal: claim.signal });
  const upgrade = <Answer>(databaseId: string, rest: string, upgradeId: string, claim: Claim, answer: z.ZodType<Answer>) =>
    change('POST', pathOf(databaseId, `/upgrade/${rest}`), answer, claim, { upgrade_id: upgradeId });

  return {
    ensureDatabase: (id, wanted, claim) => change('PUT', pathOf(id), databaseDescriptionSchema, claim, wanted),
    readDatabase: (id, signal) => call({ method: 'GET', path: pathOf(id), answer: databaseDescriptionSchema, signal }),
    destroyDatabase: (id, claim) => change('DELETE', pathOf(id), nothing, claim),
    precheck: (id, toMajor, signal) =>
      call({ method: 'POST', path: pathOf(id, '/precheck'), body: { to_major: toMajor }, answer: judgementSchema, signal }),
    access: (id, claim) => change('POST', pathOf(id, '/access'), accessSchema, claim),
    prepareTarget: (id, wanted, claim) => change('POST', pathOf(id, '/upgrade'), nothing, claim, wanted),
    accessUpgrade: (id, upgradeId, claim) => upgrade(id, 'access', upgradeId, claim, upgradeAccessSchema),
    blockWrites: (id, upgradeId, claim) => upgrade(id, 'block', upgradeId, claim, nothing),
    cutover: (id, upgradeId, claim) => upgrade(id, 'cutover', upgradeId, claim, cutoverAnswerSchema),
    restOld: (id, upgradeId, claim) => upgrade(id, 'rest', upgradeId, claim, nothing),
    retireOld: (id, upgradeId, claim) => upgrade(id, 'retire', upgradeId, claim, nothing),
    abandonUpgrade: (id, upgradeId, claim) => upgrade(id, 'abandon', upgradeId, claim, nothing),
    makeScratch: (id, { scratchId, major }, claim) =>
      change('POST', pathOf(id, '/scratch'), scratchAccessSchema, claim, { scratch_id: scratchId, major }),
    dropScratch: (id, scratchId, claim) => change('DELETE', pathOf(id, '/scratch'), nothing, claim, { scratch_id: scratchId }),
    close: () => pool.close(),
  };
}

function refusalOf(answered: unknown): DatabaseHostError {
  const { code, detail } = errorAnswerSchema.parse(answered);
  return new DatabaseHostError(isDatabaseHostErrorCode(code) ? code : 'internal', detail);
}
