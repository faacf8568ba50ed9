import { KeptServer, type RunningServer } from './kept-server';

/** A server that ends when it is stopped. Its starts are held until `open` is called, and fail while `isBroken`. */
function newServer() {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const seen = { starts: 0, running: 0, isBroken: false };
  const start = async (): Promise<RunningServer> => {
    seen.starts += 1;
    await gate;
    if (seen.isBroken) throw new Error('its port is taken');
    seen.running += 1;
    let end = (): void => undefined;
    const exited = new Promise<void>((resolve) => {
      end = () => {
        seen.running -= 1;
        end = () => undefined;
        resolve();
      };
    });
    return { adminUrl: 'the URL', exited, stop: async () => end() };
  };
  let tell = (): void => undefined;
  const isUp = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const log = { error: () => undefined };
  const kept = new KeptServer({ start, onUp: async () => tell(), onDown: () => undefined, log, facts: {} });
  return { kept, seen, open, isUp };
}

test('a stop during a start also stops what the start brings up', async () => {
  const { kept, seen, open } = newServer();
  const started = kept.start().then(
    () => 'started',
    () => 'failed',
  );
  const stopped = kept.stop();
  open();
  await stopped;
  expect([await started, seen.running, kept.isUp]).toEqual(['failed', 0, false]);
});

test('two callers of a start that is under way share it', async () => {
  const { kept, seen, open } = newServer();
  const both = [kept.start(), kept.start()];
  open();
  await Promise.all(both);
  expect(seen).toMatchObject({ starts: 1, running: 1 });
  await kept.stop();
});

test('a first start that is not awaited is repeated until it succeeds, and no more after a stop', async () => {
  const { kept, seen, open, isUp } = newServer();
  seen.isBroken = true;
  kept.keepStarting();
  open();
  await kept.settled();
  expect(kept.isUp).toBe(false);
  seen.isBroken = false;
  await isUp;
  await kept.stop();
  expect([seen.running, kept.isUp]).toEqual([0, false]);

  const other = newServer();
  other.seen.isBroken = true;
  other.kept.keepStarting();
  other.open();
  await other.kept.settled();
  await other.kept.stop();
  const { starts } = other.seen;
  other.seen.isBroken = false;
  await other.kept.start();
  expect(other.seen).toMatchObject({ starts: starts + 1, running: 1 });
  await other.kept.stop();
});
