import { uuidv7 } from 'uuidv7';
import { newKey } from '../test/fixture';
import { createPlaces, type Place } from './places';

const never = 3_600_000;
const limits = { placesMax: 20, newMax: 2, newMs: never, waitingMax: 20, waitMs: never };
const orgId = uuidv7();
/** Another key of one organisation each time. */
const callOf = (organisation: string) => newKey({ orgId: organisation });
const isPlace = (taken: Place | Promise<Place>): taken is Place => !(taken instanceof Promise);

test('an organisation, whichever of its keys it calls with, has as many new calls at a time as there may be, and another one its own', async () => {
  const places = createPlaces(limits);
  const first = await places.take(callOf(orgId));
  const second = await places.take(callOf(orgId));
  const third = places.take(callOf(orgId));
  const other = places.take(callOf(uuidv7()));
  expect([isPlace(third), isPlace(other), places.taken]).toEqual([false, true, 3]);
  first.giveBack();
  const admitted = await third;
  for (const place of [second, admitted, await other]) place.giveBack();
  expect(places.taken).toBe(0);
});

test('a call that takes longer is not new any more: it keeps its place, and the next one begins', async () => {
  const places = createPlaces({ ...limits, newMs: 1 });
  const taken = [];
  for (let calls = 0; calls < 6; calls += 1) taken.push(await places.take(callOf(orgId)));
  expect(places.taken).toBe(6);
  for (const place of taken) place.giveBack();
  expect(places.taken).toBe(0);
});
