import { setTimeout as wait } from 'node:timers/promises';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { Problem, type ProblemDetails, problem } from '@drydock/contracts/platform/problem';
import { type ProblemCode, problems } from '@drydock/contracts/platform/problems';
import { faultpoint } from '@drydock/process';
import type { Turns } from '../access/turns';
import { classifyDatabaseError } from '../database/database-error';
import type { Database } from '../database/sql';
import {
  type Answer,
  type AnswerTime,
  acceptedDetail,
  answerOf,
  answerOfProblem,
  problemOfError,
} from '../http/answer';
import { type HandlerRequest, parametersOf, type Reply, type Route } from '../http/route';
import { SecretGone } from '../process/secrets';
import type { Log } from '../telemetry/log';
import {
  type Claim,
  claimOrReplay,
  type IdempotencyLimits,
  releaseClaim,
  releaseUnaccepted,
  storeAccepted,
  storeAnswer,
  yieldClaim,
} from './idempotency';

class OutcomeUnknown extends Problem {}

/**
 * Makes the error that `awaitOutcome` throws if the effect was accepted and its outcome is not known yet. The caller
 * gets it as a problem with this code. A repeat with the same Idempotency-Key waits for that effect and starts no
 * second effect.
 */
export const outcomeUnknown = (code: ProblemCode, details: ProblemDetails = {}): Problem =>
  new OutcomeUnknown(code, details);

const isOutcomeUnknown = (error: unknown): boolean => error instanceof OutcomeUnknown;

/**
 * Returns the reply in the form that is stored, without its secret. Throws if `rehydrate` does not restore exactly the
 * same body, and the effect is then rolled back. Without this check, a client that loses the first answer could lose
 * the secret.
 */
function keptReply(route: Route<never>, request: AnyRequest, reply: Reply): Reply {
  const { replaySecret } = route;
  if (replaySecret === undefined || request.idempotencyKey === undefined) return reply;
  const kept: unknown = JSON.parse(JSON.stringify(replaySecret.remove(reply.body)));
  const again = replaySecret.rehydrate(kept, request.idempotencyKey, request);
  if (JSON.stringify(again) !== JSON.stringify(reply.body))
    throw new Error('rehydrate does not give back what remove was given');
  return { ...reply, body: kept };
}

/**
 * The stored answer with its secret. A refusal contains no secret and is returned as it was stored. Throws
 * `idempotency_key_reused` if the secret was derived from a service secret that is gone. The caller then needs a new
 * Idempotency-Key.
 */
function rehydratedAnswer(route: Route<never>, request: AnyRequest, rawKey: string, answer: Answer): Answer {
  if (route.replaySecret === undefined || answer.status >= 300) return answer;
  try {
    return { ...answer, text: JSON.stringify(route.replaySecret.rehydrate(JSON.parse(answer.text), rawKey, request)) };
  } catch (error) {
    if (!(error instanceof SecretGone)) throw error;
    const made = answer.headers['location'];
    throw problem('idempotency_key_reused', {
      detail: [
        `The first request with this Idempotency-Key was carried out${made === undefined ? '' : `, see ${made}`}.`,
        'Its answer showed a secret that cannot be shown again: this installation has changed its master key since.',
        'If you do not have the secret, replace or delete what was made, and use a fresh Idempotency-Key.',
      ].join(' '),
      cause: error,
    });
  }
}

const attemptsMax = 3;
const backoffMsMax = 30;

/**
 * Runs `work` in one transaction, up to three times if Postgres reports a serialization failure or a deadlock. Each
 * failed run is rolled back and may be repeated, so `work` must have no effect outside the transaction. Random pauses
 * keep the same two transactions from colliding again.
 */
export async function transact<Tx, T>(database: Database<Tx>, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await database.transaction(async (tx) => {
        const done = await work(tx);
        faultpoint('accept.before_commit');
        return done;
      });
      faultpoint('accept.after_commit');
      return result;
    } catch (error) {
      if (attempt >= attemptsMax || classifyDatabaseError(error) !== 'conflict') throw error;
      await wait(Math.random() * backoffMsMax * attempt);
    }
  }
}

type AnyRequest = HandlerRequest<EndpointDefinition>;

interface Performance<Tx> {
  database: Database<Tx>;
  limits: IdempotencyLimits;
  log: Log;
  turns: Turns;
  time: AnswerTime;
  /** Throws if a reply does not follow the contract. Does nothing in production. */
  checkReply(reply: Reply): void;
  /** Called after each commit of an effect. */
  changed: (() => void) | undefined;
}

/**
 * Functions that `execute` has registered to run after the commit. The list is emptied before each attempt at the
 * transaction.
 */
export interface Afterwards {
  works: Array<() => unknown>;
}

/** The parts of a request that an Idempotency-Key is bound to. */
export interface Asked {
  /**
   * The concrete path without the query. Its parameters are in canonical form, so that the same id in another spelling
   * gives the same path.
   */
  path: string;
  /** The body as it was sent, without defaults. */
  body: unknown;
  /** The query; empty if the request had none. */
  query: Readonly<Record<string, unknown>>;
}

/** Runs a route. Requests with the same Idempotency-Key cause its effect at most once. */
export async function perform<Tx>(
  kit: Performance<Tx>,
  route: Route<Tx>,
  request: AnyRequest,
  afterwards: Afterwards,
  asked: Asked,
): Promise<Answer> {
  const { idempotencyKey: rawKey, caller } = request;
  if (rawKey === undefined)
    return answerOnceVisible(kit, route, request, await execute(kit, route, request, afterwards, undefined));
  const attempt = { callerKeyId: caller.keyId, method: route.endpoint.method, ...asked, rawKey };
  const taken = await claimOrReplay(kit.database.sql(), route.endpoint, attempt, kit.limits);
  if ('replay' in taken)
    return answerOnceVisible(kit, route, request, replayed(rehydratedAnswer(route, request, rawKey, taken.replay)));
  let answer: Answer;
  try {
    answer = await execute(kit, route, request, afterwards, taken.claim);
  } catch (error) {
    await concludeRefusal(kit, taken.claim, error, request.requestId);
    throw error;
  }
  return answerOnceVisible(kit, route, request, answer);
}

/**
 * Returns the answer once every process sees the effect: a success waits for `beforeAnswer` first. The replay of a
 * success waits too, because the first attempt may have ended between its commit and its answer.
 */
async function answerOnceVisible<Tx>(
  { time }: Performance<Tx>,
  route: Route<Tx>,
  request: AnyRequest,
  answer: Answer,
): Promise<Answer> {
  if (answer.status >= 300 || route.beforeAnswer === undefined) return answer;
  time.accept();
  await route.beforeAnswer(request);
  return answer;
}

const replayed = (answer: Answer): Answer => ({
  ...answer,
  headers: { ...answer.headers, 'idempotent-replayed': 'true' },
});

async function execute<Tx>(
  kit: Performance<Tx>,
  route: Route<Tx>,
  request: AnyRequest,
  afterwards: Afterwards,
  claim: Claim | undefined,
): Promise<Answer> {
  if (route.read !== undefined) {
    const reply = await route.read(request);
    kit.checkReply(reply);
    if (claim !== undefined) await storeAnswer(kit.database.sql(), claim, answerOf(reply));
    return answerOf(reply);
  }
  if (route.awaitOutcome === undefined) {
    const reply = await preloadAndExecute(kit, route, request, afterwards, async (tx, done) => {
      const made = done as Reply;
      kit.checkReply(made);
      if (claim !== undefined)
        await storeAnswer(kit.database.sql(tx), claim, answerOf(keptReply(route, request, made)));
    });
    return answerOf(reply as Reply);
  }
  // `claim.accepted` is set if an earlier attempt has committed this effect and ended before the outcome was known.
  const accepted =
    claim?.accepted ??
    (await preloadAndExecute(kit, route, request, afterwards, async (tx, done) => {
      if (claim !== undefined) await storeAccepted(kit.database.sql(tx), claim, done, kit.limits.outcomeLeaseSeconds);
    }));
  kit.time.accept();
  try {
    const reply = await route.awaitOutcome(request, accepted);
    kit.checkReply(reply);
    if (claim !== undefined) await storeAnswer(kit.database.sql(), claim, answerOf(reply));
    return answerOf(reply);
  } catch (error) {
    throw error instanceof Problem ? error : outcomeUnread(error, claim !== undefined);
  }
}

/**
 * The error for an effect whose outcome could not be read. The effect may have happened. So the answer must not say
 * that nothing was started, and the key must not be freed.
 */
function outcomeUnread(error: unknown, isRepeatable: boolean): Problem {
  const { code, details } = problemOfError(error);
  return outcomeUnknown(code, { ...details, detail: acceptedDetail(isRepeatable) });
}

/**
 * Milliseconds that must be left of a request's time when its turn comes. `executeMs` is for the effect itself.
 * `outcomeMs` is for `awaitOutcome`: the wait for a worker (10.5 s, `startDecidedMs` of packages/workflow) and a last
 * read.
 */
const executeMs = 500;
const outcomeMs = 13_000;

async function preloadAndExecute<Tx>(
  kit: Performance<Tx>,
  route: Route<Tx>,
  request: AnyRequest,
  afterwards: Afterwards,
  store: (tx: Tx, done: unknown) => Promise<void>,
): Promise<unknown> {
  const world = await route.preload?.(request);
  const execute = () => {
    kit.time.begin();
    return transact(kit.database, async (tx) => {
      afterwards.works = [];
      const made = await route.execute?.(tx, request, world);
      await store(tx, made);
      return made;
    });
  };
  const thing = thingOf(route, request);
  const reservedMs = route.awaitOutcome === undefined ? executeMs : executeMs + outcomeMs;
  const done =
    thing === undefined ? await execute() : await kit.turns.take(thing, execute, kit.time.leftMs() - reservedMs);
  kit.changed?.();
  for (const work of afterwards.works) runAfterwards(work, kit.log);
  return done;
}

/**
 * Identifies the thing that a call changes, by the first parameter of the path. Calls that change the same thing take
 * turns. The organisation is a part of the result, so that another organisation's calls with the same id delay nobody.
 * Undefined for a path without parameters, such as `POST /v1/sites`.
 */
function thingOf<Tx>({ endpoint }: Route<Tx>, { caller, params }: AnyRequest): string | undefined {
  const name = parametersOf(endpoint.path)[0];
  return name === undefined
    ? undefined
    : JSON.stringify([caller.orgId, caller.mode, new Map(Object.entries(params)).get(name)]);
}

/**
 * Runs `work` after the commit. The answer does not wait for `work`. A failure of `work` is only logged, because the
 * effect is already committed.
 */
function runAfterwards(work: () => unknown, log: Log): void {
  Promise.resolve()
    .then(work)
    .catch((error: unknown) => log.error({ err: error }, 'work after the commit failed'));
}

/**
 * Ends a failed attempt on a key.
 * - A 422 that waiting would not change is stored as the answer for the key.
 * - If the outcome of an accepted effect is not known, the key stays bound to the effect.
 * - Any other {@link Problem} frees the key for a retry.
 * - An error that is no problem may have been thrown after the commit. It frees the key only if no effect is bound to
 *   it.
 * If the database fails here, the failure is only logged, because the lease runs out by itself.
 */
async function concludeRefusal<Tx>(
  kit: Performance<Tx>,
  claim: Claim,
  error: unknown,
  requestId: string,
): Promise<void> {
  const sql = kit.database.sql();
  try {
    if (isOutcomeUnknown(error)) await yieldClaim(sql, claim);
    else if (error instanceof Problem && error.status === 422 && problems[error.code].transient !== true) {
      await storeAnswer(sql, claim, answerOfProblem(error, requestId));
    } else if (error instanceof Problem) await releaseClaim(sql, claim);
    else await releaseUnaccepted(sql, claim);
  } catch (cause) {
    kit.log.warn({ err: cause }, 'an idempotency key stays taken until its lease ends');
  }
}
