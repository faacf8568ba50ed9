import { type Entry, sectionsInTurn } from './section';

async function* pieces(text: string): AsyncGenerator<Buffer> {
  for (const letter of text) yield Buffer.from(letter);
}
async function* entriesOf(...texts: string[]): AsyncGenerator<Entry> {
  for (const text of texts) yield { path: text, content: () => pieces(text) };
}

const textOf = async (content: AsyncIterable<Buffer>): Promise<string> => {
  let text = '';
  for await (const piece of content) text += piece.toString();
  return text;
};

test('a loader that asks ahead gets the next section only when the one before has been read to its end', async () => {
  const sections = sectionsInTurn(entriesOf('first', 'second'))[Symbol.asyncIterator]();
  const first = await sections.next();
  let isGiven = false;
  const ahead = sections.next().then((result) => {
    isGiven = true;
    return result;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isGiven).toBe(false);
  expect(await textOf(first.value?.content)).toBe('first');
  expect(await textOf((await ahead).value?.content)).toBe('second');
  expect((await sections.next()).done).toBe(true);
});

test('a loader that gives up is let go, though it never read what it was given', async () => {
  const sections = sectionsInTurn(entriesOf('first', 'second'))[Symbol.asyncIterator]();
  await sections.next();
  const ahead = sections.next();
  await sections.return?.();
  expect((await ahead).done).toBe(true);
});
