import { Newcomers } from './database-address';

test('a new client always gets a place, and the oldest client of the busiest origin loses its place', () => {
  const newcomers = new Newcomers(5);
  const ended: string[] = [];
  const come = (origin: string, name: string): (() => void) => newcomers.add(origin, () => ended.push(name));
  come('elsewhere', 'guest');
  for (let at = 1; at <= 8; at += 1) come('one address', `flood ${at}`);
  expect(ended).toEqual(['flood 1', 'flood 2', 'flood 3', 'flood 4']);
  come('a third', 'owner');
  expect(ended.at(-1)).toBe('flood 5');
  expect(ended).not.toContain('guest');
});

test('a place that is given back twice becomes free once', () => {
  const newcomers = new Newcomers(2);
  const ended: string[] = [];
  const leave = newcomers.add('a', () => ended.push('first'));
  newcomers.add('a', () => ended.push('second'));
  leave();
  leave();
  newcomers.add('a', () => ended.push('third'));
  expect(ended).toEqual([]);
  newcomers.add('a', () => ended.push('fourth'));
  expect(ended).toEqual(['second']);
});
