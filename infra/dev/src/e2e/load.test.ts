/**
 * Ten thousand connections for a minute.
 *
 * @tier chaos
 * @processes
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isChaos } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { inRepo } from '../dev-config';
import type { LoadSetup, LoadTally } from './load.program';
import { percentile } from './noisy-neighbour';
import { Tenant } from './tenant';

jest.setTimeout(900_000);
const seconds = isChaos ? 60 : 10;
const connections = 10_000;
/** The share of the load that one organisation sends. */
const share = 0.95;
const path = '/v1/sites?limit=10';

let stack: TestStack;
let greedy: Tenant;
let other: Tenant;
beforeAll(async () => {
  stack = await startStack({ environment: { DRYDOCK_DEMO: 'sites' } });
  [greedy, other] = [new Tenant(stack, stack.demo.live_key), new Tenant(stack, stack.demo.other_org_key)];
});
afterAll(() => stack?.stop());

/** Runs the groups for so long; resolves with what each was answered. */
async function load(groups: LoadSetup['groups'], forSeconds: number): Promise<Record<string, LoadTally>> {
  const child: ChildProcess = fork(inRepo('infra/dev/dist/e2e/load.program.js'), { stdio: 'inherit', serialization: 'advanced' });
  const setup: LoadSetup = { base: stack.demo.base_url, groups, path };
  child.send(setup);
  await sleep(forSeconds * 1_000);
  const told = once(child, 'message');
  child.send('end');
  const [tallies] = (await told) as [Record<string, LoadTally>];
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  return tallies;
}

const p99 = (tally: LoadTally | undefined): number => percentile(tally?.admittedMs ?? [], 0.99);

test('ten thousand connections are answered or told when to come back, and one organisation with most of them costs another little', async () => {
  const clients = Math.round(connections * (1 - share));
  const quiet = await load({ other: { token: other.token, clients: 1 } }, seconds);
  const alone = await load({ other: { token: other.token, clients } }, seconds);
  const loaded = await load(
    { greedy: { token: greedy.token, clients: connections - clients }, other: { token: other.token, clients } },
    seconds,
  );
  const backMs = Date.now();
  const calm = await other.call('GET', path);
  const summary = Object.fromEntries(
    Object.entries({ quiet: quiet['other'], alone: alone['other'], greedy: loaded['greedy'], other: loaded['other'] }).map(
      ([name, tally]) => [
        name,
        {
          admitted: tally?.admittedMs.length,
          p50: percentile(tally?.admittedMs ?? [], 0.5),
          p99: p99(tally),
          shed: tally?.shed,
          wrong: tally?.wrong,
        },
      ],
    ),
  );
  process.stdout.write(`${JSON.stringify(summary, null, 1)}\n`);
  expect(calm.status).toBe(200);
  expect(Date.now() - backMs).toBeLessThan(10_000);
  expect([loaded['greedy']?.wrong, loaded['other']?.wrong]).toEqual([{}, {}]);
  expect(p99(loaded['greedy'])).toBeLessThan(2_000);
  expect(p99(loaded['other'])).toBeLessThan(2_000);
  expect(p99(loaded['other'])).toBeLessThan(3 * p99(alone['other']));
});
