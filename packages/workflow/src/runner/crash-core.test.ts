/**
 * @processes
 */
import { crashLimitMs, queueBackends } from '@drydock/testing/scope';
import { crashBox } from '../testing/crash-box';
import { openWorld, type World } from '../testing/world';

const [backend = 'postgres'] = queueBackends();

/**
 * The cases: a death before the point of no return, a death after it, a death during an undo, a frozen worker that
 * wakes up, and a failure that is undone.
 */
const core = [
  'kill at refill_box.stage.after_effect',
  'kill at refill_box.retire.after_effect',
  'kill at refill_box.swap.undo_after_effect while going back',
  'stop at refill_box.swap.after_effect',
  'throw at refill_box.swap.after_effect',
];

describe('refill_box, killed, frozen and failed', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(backend);
  });
  afterAll(() => world.close());

  it(
    'leaves the box OLD or NEW, and says which',
    async () => {
      const { cases } = await crashBox(world, { only: (name) => core.includes(name) });
      expect(cases.map(({ name, state }) => `${name}: ${state}`).sort()).toEqual(
        core.map((name) => `${name}: ${/undo|throw/.test(name) ? 'old' : 'new'}`).sort(),
      );
    },
    crashLimitMs,
  );
});
