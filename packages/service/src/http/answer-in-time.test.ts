import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type Fixture, startFixture } from '../../test/fixture';
import { createLog } from '../telemetry/log';
import { answerInTime } from './answer';

let fixture: Fixture;
afterEach(() => fixture.close());

function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
/**
 * The milliseconds after which this suite ends a wait that would otherwise be endless. A test fails if the code under
 * test waits for as long.
 */
const insteadOfForever = 60_000;

test('an outcome that is too late is a 503 while the work continues, and the same key gets it without a second effect', async () => {
  fixture = await startFixture({ answerWithinMs: 2_000 });
  const { opened, open } = gate();
  fixture.levers.outcome = async () => {
    await Promise.race([opened, wait(insteadOfForever, undefined, { ref: false })]);
    return 'done';
  };
  const [thing, idempotencyKey] = [uuidv7(), randomUUID()];
  const poke = () => fixture.call({ method: 'POST', path: `/v1/things/${thing}/poke`, idempotencyKey });
  const late = await poke();
  expect([late.status, late.json]).toMatchObject([
    503,
    { code: 'dependency_unavailable', detail: expect.stringMatching(/^It was accepted/) },
  ]);
  expect(Number(late.headers['retry-after'])).toBeGreaterThan(0);
  open();
  const replayed = await until(async () => {
    const answer = await poke();
    return answer.status === 200 && answer;
  });
  expect([replayed.headers['idempotent-replayed'], await fixture.rows()]).toEqual(['true', 1]);
});

test('a call is refused before it starts anything if its turn would come too late for an answer in time', async () => {
  fixture = await startFixture({ answerWithinMs: 13_800 });
  const { opened, open } = gate();
  let isHeld = false;
  fixture.levers.hold = () => {
    isHeld = true;
    return opened;
  };
  const thing = uuidv7();
  const holder = fixture.call({ method: 'POST', path: `/v1/things/${thing}/name`, body: { name: 'x' } });
  await until(() => isHeld);
  const opening = setTimeout(open, insteadOfForever);
  const refused = await fixture.call({ method: 'POST', path: `/v1/things/${thing}/poke` });
  expect([refused.status, refused.json]).toMatchObject([
    503,
    { detail: expect.stringContaining('Nothing was started') },
  ]);
  clearTimeout(opening);
  open();
  expect([(await holder).status, await fixture.rows()]).toEqual([200, 1]);
});

test('nothing is started any more once the caller was told that nothing was started', async () => {
  fixture = await startFixture();
  const { opened, open } = gate();
  let began: unknown = 'not yet';
  const log = createLog({ service: 'hosting', destination: { write: () => undefined } });
  const answer = answerInTime({ service: 'hosting', log, withinMs: 20, isRepeatable: false }, async ({ begin }) => {
    await opened;
    try {
      begin();
      began = 'begun';
    } catch (error) {
      began = error;
    }
  });
  await expect(answer).rejects.toMatchObject({ details: { detail: expect.stringContaining('Nothing was started') } });
  open();
  await until(() => began !== 'not yet');
  expect(began).toMatchObject({ code: 'dependency_unavailable' });
});

test('a repeat is advised only to a caller who sent an Idempotency-Key', async () => {
  fixture = await startFixture();
  const log = createLog({ service: 'hosting', destination: { write: () => undefined } });
  const { opened, open } = gate();
  for (const reached of ['begin', 'accept'] as const)
    for (const isRepeatable of [true, false]) {
      const answer = answerInTime({ service: 'hosting', log, withinMs: 20, isRepeatable }, async (time) => {
        time[reached]();
        await opened;
      });
      const detail = await answer.then(
        () => '',
        (error: { details: { detail: string } }) => error.details.detail,
      );
      expect(detail).toMatch(isRepeatable ? /again with the same Idempotency-Key/ : /Read the resource/);
      expect(detail.includes('the same Idempotency-Key')).toBe(isRepeatable);
    }
  open();
});
