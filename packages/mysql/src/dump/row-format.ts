import { hash } from 'node:crypto';
import type { RawRow } from '../session/session';
import { TransferError } from '../session/transfer-error';

const nullLength = 0xffff_ffff;
const lengthBytes = 4;

const encodedBytes = (row: RawRow): number =>
  row.reduce((bytes, value) => bytes + lengthBytes + (value?.length ?? 0), 0);

/**
 * Encodes rows, and adds each row to `sum`. An encoded value is its length (u32, ffffffff for NULL) and then its bytes.
 */
export function encodeRows(rows: readonly RawRow[], sum: RowSum): Buffer {
  const encoded = Buffer.allocUnsafe(rows.reduce((bytes, row) => bytes + encodedBytes(row), 0));
  let end = 0;
  for (const row of rows) {
    const start = end;
    for (const value of row) {
      end = encoded.writeUInt32BE(value === null ? nullLength : value.length, end);
      if (value !== null) end += value.copy(encoded, end);
    }
    sum.add(encoded.subarray(start, end));
  }
  return encoded;
}

/**
 * Decodes rows of `columns` values each. `columns` is at least 1. The rows that end in the same piece of the content
 * are one batch. The values share the memory of the pieces.
 */
export async function* decodeRows(content: AsyncIterable<Buffer>, columns: number): AsyncGenerator<RawRow[]> {
  let pieces: Buffer[] = [];
  let held = 0;
  let wanted = lengthBytes;
  let row: RawRow = [];
  for await (const piece of content) {
    pieces.push(piece);
    held += piece.length;
    if (held < wanted) continue;
    const all = pieces.length === 1 ? piece : Buffer.concat(pieces);
    const rows: RawRow[] = [];
    let at = 0;
    for (;;) {
      wanted = lengthBytes;
      if (all.length - at < wanted) break;
      const length = all.readUInt32BE(at);
      const isNull = length === nullLength;
      wanted = lengthBytes + (isNull ? 0 : length);
      if (all.length - at < wanted) break;
      row.push(isNull ? null : all.subarray(at + lengthBytes, at + wanted));
      at += wanted;
      if (row.length < columns) continue;
      rows.push(row);
      row = [];
    }
    if (rows.length > 0) yield rows;
    pieces = [all.subarray(at)];
    held = all.length - at;
  }
  if (held > 0 || row.length > 0) throw new TransferError('dump_malformed', 'a row ends in the middle');
}

const asHex = (sum: bigint): string => BigInt.asUintN(128, sum).toString(16).padStart(32, '0');

/** Returns the sum of a table in which the rows of `before` were replaced by the rows of `after`. */
export const exchangeRows = (sum: string, before: RowSum, after: RowSum): string =>
  asHex(BigInt(`0x${sum}`) - BigInt(`0x${before.sum}`) + BigInt(`0x${after.sum}`));

const wordBits = 32n;
const words = [0, 1, 2, 3] as const;
/**
 * After this many rows the sums of 32-bit words are carried into `total`. Until then each sum is at most 2^52, which a
 * JavaScript number holds exactly.
 */
const exactAdditions = 2 ** 20;

/** A 128-bit sum over the hashes of rows. The sum does not depend on the order of the rows. */
export class RowSum {
  rows = 0;
  bytes = 0;
  private total = 0n;
  private readonly added = [0, 0, 0, 0];

  add(encoded: Buffer): void {
    this.rows += 1;
    this.bytes += encoded.length;
    const digest = hash('sha256', encoded, 'buffer');
    for (const word of words) this.added[word] = (this.added[word] ?? 0) + digest.readUInt32BE(word * 4);
    if (this.rows % exactAdditions === 0) this.carry();
  }

  get sum(): string {
    this.carry();
    return asHex(this.total);
  }

  private carry(): void {
    const added = this.added
      .splice(0, words.length, 0, 0, 0, 0)
      .reduce((total, word) => (total << wordBits) + BigInt(word), 0n);
    this.total = BigInt.asUintN(128, this.total + added);
  }
}
