import { entriesInTurn, type OpenedEntry } from './open-entries';

async function* pieces(text: string): AsyncGenerator<Buffer> {
  for (const letter of text) yield Buffer.from(letter);
}
async function* entriesOf(...texts: string[]): AsyncGenerator<Pick<OpenedEntry, 'path' | 'content'>> {
  for (const text of texts) yield { path: text, content: () => pieces(text) };
}

const textOf = async (content: AsyncIterable<Buffer>): Promise<string> => {
  let text = '';
  for await (const piece of content) text += piece.toString();
  return text;
};

test('a loader that asks ahead gets the next entry only when the current entry has been read to its end', async () => {
  const given = entriesInTurn(entriesOf('first', 'second'))[Symbol.asyncIterator]();
  const first = await given.next();
  let isGiven = false;
  const ahead = given.next().then((result) => {
    isGiven = true;
    return result;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isGiven).toBe(false);
  expect(await textOf(first.value?.content)).toBe('first');
  expect(await textOf((await ahead).value?.content)).toBe('second');
  expect((await given.next()).done).toBe(true);
});

test('a loader that ends the iteration is released, even if it has not read its entry', async () => {
  const given = entriesInTurn(entriesOf('first', 'second'))[Symbol.asyncIterator]();
  await given.next();
  const ahead = given.next();
  await given.return?.();
  expect((await ahead).done).toBe(true);
});
