/**
 * The suites that change nothing which another one needs, on one stack instead of a stack for each. The attacks come
 * last: they leave their sites behind.
 *
 * @tier long
 * @processes
 */
import { isChaos } from '@drydock/testing/scope';
import { shareStack } from './one-stack';

const suites = ['restore', 'trace', 'client', 'secret-hunt', 'attacks'];

if (isChaos) test.todo('in chaos each of these suites runs by itself');
else {
  const stopSharing = shareStack();
  for (const suite of suites) describe(`on the stack of all: ${suite}`, () => void require(`./${suite}.test`));
  afterAll(stopSharing);
}
// The limit is the longest of the suites.
jest.setTimeout(900_000);
