import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { type EndpointDefinition, problemCodesOf } from '@drydock/contracts/platform/endpoint';
import { problemSchema, problems } from '@drydock/contracts/platform/problems';
import { isChaos } from '@drydock/testing/scope';
import { sampleOf } from '@drydock/testing/seeded-random';
import fc from 'fast-check';
import { assertContract } from './assert-contract';
import type { ServiceAnswer } from './call-service';
import type { Sent, Things } from './conformance-rule';
import { type Asked, requestsOf, searchOf } from './fuzz';

const mostTries = 30;
const isOutOfTime = ({ status, json }: ServiceAnswer): boolean =>
  status === 503 && problemSchema.safeParse(json).data?.['dependency'] === 'database';

export interface Fuzzed {
  endpoint: EndpointDefinition;
  /** The only problem with a status of 500 or more that the operation may answer here; undefined if there is none. */
  outage: string | undefined;
  /** Whether some requests of the operation wait for a worker, an agent or a gateway that does not run. */
  isWaiting: boolean;
  /** The records for the first requests of the operation. */
  things: Things;
  makeThings(): Promise<Things>;
  /** A body with which the operation succeeds on `things`. */
  goodBody(things: Things): object | undefined;
  ask(things: Things, sent: Sent): Promise<ServiceAnswer>;
}

/**
 * How many requests one set of records gets. A set is replaced after a few requests, because a change or a deletion
 * uses it up. Reads use up nothing.
 */
const perThings = ({ method }: EndpointDefinition): number => (method === 'GET' ? 200 : 40);
/** How many sets are used at the same time where requests wait for a missing dependency. */
const waitingSets = 16;
/** Milliseconds after which no further request is sent. `npm run chaos` has no such limit and sends all requests. */
const ciLimitMs = 3_000;

/**
 * Sends an operation requests that its schemas allow and others that nobody expects. Throws at the first answer that
 * its contract does not promise.
 */
export async function fuzzOperation(fuzzed: Fuzzed): Promise<void> {
  const { endpoint } = fuzzed;
  const { seed, count } = sampleOf(`requests of ${endpoint.id}`, { inCi: 15, inChaos: 2_000 });
  const until = isChaos ? Number.POSITIVE_INFINITY : Date.now() + ciLimitMs;
  const requestsPerThings = perThings(endpoint);
  const sets = Array.from({ length: Math.ceil(count / requestsPerThings) }, (_set, index) => index);
  const tally = new Map<string, number>();
  const next = sets.values();
  let made: Promise<Things> = Promise.resolve(fuzzed.things);
  /** Makes the sets one after the other, because a service may allow only a few unfinished records. */
  const thingsFor = (set: number): Promise<Things> => {
    if (set > 0) made = made.then(() => fuzzed.makeThings());
    return made;
  };
  const askSets = async (): Promise<void> => {
    for (const set of next) {
      const things = await thingsFor(set);
      const numRuns = Math.min(requestsPerThings, count - set * requestsPerThings);
      for (const asked of fc.sample(requestsOf(endpoint, things, fuzzed.goodBody(things)), {
        seed: seed + set,
        numRuns,
      })) {
        if (Date.now() > until) return;
        const told = await askOnce(fuzzed, things, asked);
        tally.set(told, (tally.get(told) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: fuzzed.isWaiting ? waitingSets : 1 }, askSets));
  if (!isChaos) return;
  const sent = [...tally.values()].reduce((sum, number) => sum + number, 0);
  assert.equal(sent, count, 'all of them are sent');
  const answers = [...tally].sort(([, left], [, right]) => right - left).map(([told, number]) => `${number} × ${told}`);
  process.stderr.write(`${endpoint.id} answered ${sent} requests: ${answers.join(', ')}\n`);
}

/**
 * Sends one request. Resolves with the status and code of the answer. A call that is refused because the database is
 * busy is repeated, as every caller would do.
 */
async function askOnce({ endpoint, outage, ask }: Fuzzed, things: Things, asked: Asked): Promise<string> {
  const { query, lastEventId, ...rest } = asked;
  const sent = {
    ...rest,
    search: searchOf(query),
    ...(lastEventId === undefined ? {} : { headers: { 'last-event-id': lastEventId } }),
  };
  let answer = await ask(things, sent);
  for (let tries = 1; tries < mostTries && isOutOfTime(answer); tries += 1) {
    await sleep(1_000);
    answer = await ask(things, sent);
  }
  const what = `${inspect(asked, { depth: 6, maxStringLength: 500 })} was answered ${answer.status} ${answer.text}`;
  if (answer.status < 300) {
    assertContract(endpoint, {
      status: answer.status,
      header: (name) => answer.headers[name]?.toString(),
      body: answer.json ?? answer.text,
    });
    return String(answer.status);
  }
  const code = problemSchema.safeParse(answer.json).data?.code;
  const isPromised =
    code !== undefined && problemCodesOf(endpoint).includes(code) && problems[code].status === answer.status;
  assert.ok(isPromised, what);
  const told = `${answer.status} ${code}`;
  assert.ok(answer.status < 500 || told === outage, what);
  return told;
}
