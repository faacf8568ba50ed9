import { Bell } from './bell';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function paused(bell: Bell): { isOver(): Promise<boolean> } {
  let over = false;
  void bell.pause(100, 5_000).then(() => {
    over = true;
  });
  return {
    isOver: async () => {
      await jest.advanceTimersByTimeAsync(0);
      return over;
    },
  };
}

test('a pause ends by the clock', async () => {
  const pause = paused(new Bell(new AbortController().signal));
  await jest.advanceTimersByTimeAsync(4_999);
  expect(await pause.isOver()).toBe(false);
  await jest.advanceTimersByTimeAsync(1);
  expect(await pause.isOver()).toBe(true);
});

test('a ring ends the pause, but not before its shortest time', async () => {
  const bell = new Bell(new AbortController().signal);
  const early = paused(bell);
  bell.ring();
  await jest.advanceTimersByTimeAsync(99);
  expect(await early.isOver()).toBe(false);
  await jest.advanceTimersByTimeAsync(1);
  expect(await early.isOver()).toBe(true);
  const late = paused(bell);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(await late.isOver()).toBe(false);
  bell.ring();
  expect(await late.isOver()).toBe(true);
});

test('a ring between two pauses shortens only the next pause', async () => {
  const bell = new Bell(new AbortController().signal);
  bell.ring();
  const first = paused(bell);
  await jest.advanceTimersByTimeAsync(100);
  expect(await first.isOver()).toBe(true);
  const second = paused(bell);
  await jest.advanceTimersByTimeAsync(4_000);
  expect(await second.isOver()).toBe(false);
});

test('a stopped loop does not wait for its pause', async () => {
  const stopping = new AbortController();
  const pause = paused(new Bell(stopping.signal));
  stopping.abort();
  expect(await pause.isOver()).toBe(true);
});
