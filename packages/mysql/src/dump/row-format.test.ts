import type { RawRow } from '../session/session';
import { decodeRows, encodeRows, RowSum } from './row-format';

const rows: RawRow[] = [
  [Buffer.from('1'), null, Buffer.alloc(0)],
  [Buffer.from('two'), Buffer.alloc(70_000, 7), null],
  [null, null, null],
  [Buffer.from([255, 255, 255, 255]), Buffer.from('3'), Buffer.from('x')],
];

async function* inPieces(content: Buffer, bytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes);
}

async function decoded(content: Buffer, bytes: number): Promise<RawRow[]> {
  const found: RawRow[] = [];
  for await (const some of decodeRows(inPieces(content, bytes), 3)) found.push(...some);
  return found;
}

test.each([1, 2, 3, 5, 4_096, 1_000_000])('rows come back as they were, in pieces of %d bytes', async (bytes) => {
  expect(await decoded(encodeRows(rows, new RowSum()), bytes)).toEqual(rows);
});

test('content that ends within a value, or within a row, is malformed', async () => {
  const content = encodeRows(rows, new RowSum());
  const behindSecondValue = 4 + 1 + 4;
  for (const bytes of [1, 3, 6, behindSecondValue, content.length - 1])
    await expect(decoded(content.subarray(0, bytes), 4_096)).rejects.toMatchObject({ code: 'dump_malformed' });
});

test('the sum does not depend on the order of the rows, and is the one that older backups have', () => {
  const sumOf = (some: readonly RawRow[]): RowSum => {
    const sum = new RowSum();
    encodeRows(some, sum);
    return sum;
  };
  expect(sumOf(rows).sum).toBe('62fae95a685cc87340cae5a9f0ab7900');
  expect(sumOf([...rows].reverse()).sum).toBe(sumOf(rows).sum);
  expect(sumOf([...rows, [null]]).sum).not.toBe(sumOf(rows).sum);
  expect(sumOf(rows)).toMatchObject({ rows: 4, bytes: 70_058 });
});
