import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { assertMatch, entityTagOf, hasAlready, tagged } from './entity-tag';

const read = { method: 'GET', response: { status: 200 } } as EndpointDefinition;
const answer = { status: 200, headers: { 'content-type': 'application/json' }, text: '{"a":1}' };
const tag = entityTagOf(answer.text);

test('answers that differ in one byte have different tags', () => {
  expect([entityTagOf(answer.text), entityTagOf('{"a":2}')]).toEqual([tag, expect.not.stringContaining(tag)]);
});

test.each([
  [undefined, false],
  ['', false],
  [tag, true],
  [`W/${tag}`, true],
  [`"x",${tag}`, true],
  ['*', true],
  [tag.replaceAll('"', ''), false],
])('If-None-Match %s names the answer: %s', (given, isNamed) => {
  expect(hasAlready(given, tag)).toBe(isNamed);
  expect(hasAlready(given, `W/${tag}`)).toBe(isNamed);
});

test('a client that has the answer gets 304 with its tag, and any other client the whole answer', () => {
  expect(tagged(read, answer, tag)).toEqual({ status: 304, headers: { etag: tag }, text: '' });
  expect(tagged(read, answer, '"x"')).toEqual({ ...answer, headers: { ...answer.headers, etag: tag } });
});

test('a refusal, an answer to POST and a stream have no tag', () => {
  const others = [
    [{ ...read, method: 'POST' }, answer],
    [{ ...read, response: { status: 200, contentType: 'text/event-stream' } }, answer],
    [read, { ...answer, status: 404 }],
  ] as [EndpointDefinition, typeof answer][];
  for (const [endpoint, given] of others) expect(tagged(endpoint, given, '*')).toBe(given);
});

test.each([`W/${tag}`, '"x"', '', tag.replaceAll('"', '')])('If-Match %s is refused', async (given) => {
  await expect(assertMatch(given, () => ({ a: 1 }))).rejects.toMatchObject({
    code: 'precondition_failed',
    status: 412,
  });
});

test.each([tag, `"x", ${tag}`, '*'])('If-Match %s is met', async (given) => {
  await expect(assertMatch(given, () => ({ a: 1 }))).resolves.toBeUndefined();
});

test('without If-Match nothing is read', async () => {
  const asked = jest.fn();
  await assertMatch(undefined, asked);
  expect(asked).not.toHaveBeenCalled();
});
