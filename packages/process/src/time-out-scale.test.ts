import { scaled } from './time-out-scale';

const usual = process.env['DRYDOCK_TIMEOUT_SCALE'];
afterEach(() => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = usual;
});

it.each([
  ['10', 1_000],
  ['1.5', 150],
  ['1', 100],
  // An invalid value changes nothing here, because the process refuses it when it reads its settings.
  ['0.1', 100],
  ['fast', 100],
  ['', 100],
])('with DRYDOCK_TIMEOUT_SCALE=%j 100 ms are %i', (scale, ms) => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = scale;
  expect(scaled(100)).toBe(ms);
});

it('without a scale a time-out does not change', () => {
  delete process.env['DRYDOCK_TIMEOUT_SCALE'];
  expect(scaled(100)).toBe(100);
});
