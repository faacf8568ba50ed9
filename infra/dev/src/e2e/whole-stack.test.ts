/**
 * Runs five suites on one shared stack. No suite changes what another suite needs. The attacks come last, because they
 * leave their sites behind.
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
// The limit is the time limit of the longest suite.
jest.setTimeout(900_000);
