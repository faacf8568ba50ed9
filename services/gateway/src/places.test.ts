import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { newKey } from '../test/fixture';
import { createPlaces, type Place, type Places } from './places';

const never = 3_600_000;
const limits = {
  placesMax: 40,
  burstMax: 4,
  steadyMax: 2,
  newMs: never,
  calmMs: never,
  aloneMs: 1_000,
  waitingMax: 40,
  waitMs: never,
};

/** Makes calls of an organisation, each with another key. */
class Organisation {
  readonly id = uuidv7();
  readonly begun: Place[] = [];
  asked = 0;
  private readonly places: Places;

  constructor(places: Places) {
    this.places = places;
  }

  async call(times: number): Promise<void> {
    for (let count = 0; count < times; count += 1) {
      this.asked += 1;
      const taken = this.places.take(newKey({ orgId: this.id }));
      if (taken instanceof Promise) void taken.then((place) => this.begun.push(place));
      else this.begun.push(taken);
    }
    await everythingThatIsDue();
  }

  /** Answers the oldest calls. */
  async end(times: number): Promise<void> {
    for (const place of this.begun.splice(0, times)) {
      place.giveBack();
      this.asked -= 1;
    }
    await everythingThatIsDue();
  }

  async endAll(): Promise<void> {
    while (this.asked > 0) await this.end(1);
  }

  get underWay(): number {
    return this.begun.length;
  }
}

const everythingThatIsDue = () => new Promise((resolve) => setImmediate(resolve));

const organisations: Organisation[] = [];
afterEach(async () => {
  for (const organisation of organisations.splice(0)) await organisation.endAll();
});

/** Creates places with a clock that the test sets. */
function stage(changed: Partial<typeof limits> = {}) {
  let clockMs = 0;
  const places = createPlaces({ ...limits, ...changed }, () => clockMs);
  const [one, other] = [new Organisation(places), new Organisation(places)];
  organisations.push(one, other);
  return { places, one, other, advance: (ms: number) => (clockMs += ms) };
}

test('each organisation has its own burst of new calls, which all its keys share', async () => {
  const { places, one, other } = stage();
  await other.call(1);
  await one.call(4);
  await other.call(3);
  expect([one.underWay, other.underWay]).toEqual([4, 4]);
  await one.endAll();
  await other.endAll();
  expect(places.taken).toBe(0);
});

test('an organisation whose calls wait has fewer calls at a time, and each call is answered', async () => {
  const { places, one, other } = stage();
  await other.call(1);
  await one.call(9);
  expect(one.underWay).toBe(4);
  const seen = [];
  while (one.asked > 2) {
    await one.end(1);
    seen.push(one.underWay);
  }
  expect(seen).toEqual([3, 2, 2, 2, 2, 2, 2]);
  await one.endAll();
  expect(places.taken).toBe(1);
});

test('the calls of an organisation begin at once, however many calls of another one wait', async () => {
  const { one, other } = stage();
  await other.call(1);
  await one.call(12);
  await one.end(2);
  await other.call(3);
  expect([one.underWay, other.underWay]).toEqual([2, 4]);
});

test('an organisation may use its whole share of the places unless another one has called within aloneMs', async () => {
  const { one, other, advance } = stage();
  await one.call(30);
  expect(one.underWay).toBe(limits.placesMax / 2);
  await other.call(1);
  await other.end(1);
  await one.end(limits.placesMax / 2 - 1);
  expect(one.underWay).toBe(limits.steadyMax);
  advance(limits.aloneMs - 1);
  await one.end(1);
  expect(one.underWay).toBe(limits.steadyMax);
  advance(1);
  await one.end(1);
  expect(one.underWay).toBe(one.asked);
});

test('an organisation may begin a burst again once none of its calls has waited for calmMs', async () => {
  const { one, other } = stage({ calmMs: 1 });
  await other.call(1);
  await one.call(5);
  await one.endAll();
  const began = new Set<number>();
  await until(async () => {
    await one.call(4);
    began.add(one.underWay);
    await one.endAll();
    return began.has(4);
  });
  expect(began).toContain(4);
});

test('a call that takes longer than newMs keeps its place, and the next call begins', async () => {
  const { places, one, other } = stage({ newMs: 1 });
  await other.call(1);
  await one.call(6);
  await until(() => one.underWay === 6);
  expect(places.taken).toBe(7);
  await one.endAll();
  expect(places.taken).toBe(1);
});
