/**
 * The crash cases of every step; `crash-core.test.ts` has five of them.
 *
 * @tier long
 * @processes
 */
import { crashLimitMs, isChaos, queueBackends } from '@drydock/testing/scope';
import { crashBox } from '../testing/crash-box';
import { openWorld, type World } from '../testing/world';

describe.each(queueBackends())(
  'refill_box, killed, frozen, repeated and failed at every step, with the queue on %s',
  (backend) => {
    let world: World;
    beforeAll(async () => {
      world = await openWorld(backend);
    });
    afterAll(() => world.close());

    it(
      'leaves the box OLD or NEW, and says which',
      async () => {
        const profile = isChaos ? 'full' : 'short';
        const only = process.env['DRYDOCK_TESTS_ONLY'];
        const { cases } = await crashBox(world, {
          profile,
          ...(only === undefined ? {} : { only: (name: string) => name.includes(only) }),
        });
        process.stdout.write(
          `${cases.map(({ name, ms, state }) => `${String(ms).padStart(6)} ms  ${state}  ${name}`).join('\n')}\n`,
        );
        expect(cases.length).toBeGreaterThan(0);
        if (only === undefined) expect(cases.length).toBeGreaterThanOrEqual(32);
      },
      crashLimitMs,
    );
  },
);
