/**
 * Runs five suites. Those that need no special settings share one stack, which saves starts. No suite changes what
 * another suite needs. The attacks come last, because their sites stay.
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
// Each required suite sets the time limit of all tests in this file, and the last setting counts. This last setting is
// long enough for the longest test.
jest.setTimeout(900_000);
