import type { Section } from './section';

/** A named content that can be read once, before the next one is requested. */
export interface Entry {
  path: string;
  content(): AsyncIterable<Buffer>;
}

/**
 * Turns entries of an archive into sections, one at a time. An archive is read in order, so each section waits until
 * the previous one was read. A loader that stops early (`return`) is released at once.
 */
export function sectionsInTurn(entries: AsyncGenerator<Entry>): AsyncIterable<Section> {
  let read: Promise<void> = Promise.resolve();
  let isClosed = false;
  let giveUp: () => void = () => {};
  const closed = new Promise<void>((resolve) => {
    giveUp = resolve;
  });
  const end = { done: true, value: undefined } as const;
  const next = async (): Promise<IteratorResult<Section>> => {
    await Promise.race([read, closed]);
    const result = isClosed ? end : await entries.next();
    if (result.done === true) return end;
    const { path, content } = result.value;
    let finish: () => void = () => {};
    read = new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { done: false, value: { path, content: untilRead(content(), finish) } };
  };
  const close = async (): Promise<IteratorResult<Section>> => {
    isClosed = true;
    giveUp();
    await entries.return(undefined);
    return end;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: close }) };
}

async function* untilRead(content: AsyncIterable<Buffer>, finish: () => void): AsyncGenerator<Buffer> {
  try {
    yield* content;
  } finally {
    finish();
  }
}
