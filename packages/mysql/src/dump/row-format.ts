import { createHash } from 'node:crypto';
import type { RawRow } from '../session/session';
import { TransferError } from '../session/transfer-error';

const nullLength = 0xffff_ffff;

/** A row as bytes: for each value its length (u32, ffffffff for NULL) and the value. */
export function encodeRow(row: RawRow): Buffer {
  const parts: Buffer[] = [];
  for (const value of row) {
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32BE(value === null ? nullLength : value.length);
    parts.push(length);
    if (value !== null) parts.push(value);
  }
  return Buffer.concat(parts);
}

/** Gives the rows back, with one in memory at a time. Each has at least one value. */
export async function* decodeRows(content: AsyncIterable<Buffer>, columns: number): AsyncGenerator<RawRow> {
  let chunks: Buffer[] = [];
  let held = 0;
  const source = content[Symbol.asyncIterator]();
  const take = async (bytes: number): Promise<Buffer | null> => {
    while (held < bytes) {
      const next = await source.next();
      if (next.done === true) {
        if (held === 0) return null;
        throw new TransferError('dump_malformed', 'a row ends in the middle');
      }
      chunks.push(next.value);
      held += next.value.length;
    }
    const all = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
    chunks = [all.subarray(bytes)];
    held -= bytes;
    return all.subarray(0, bytes);
  };
  for (;;) {
    const row: RawRow = [];
    for (let column = 0; column < columns; column += 1) {
      const length = (await take(4))?.readUInt32BE();
      if (length === undefined) {
        if (column === 0) return;
        throw new TransferError('dump_malformed', 'a row ends in the middle');
      }
      const value = length === nullLength ? null : length === 0 ? Buffer.alloc(0) : await take(length);
      if (value === null && length !== nullLength) throw new TransferError('dump_malformed', 'a row ends in the middle');
      row.push(value);
    }
    yield row;
  }
}

const sumBits = 128n;

/** A sum over rows in any order. */
export class RowSum {
  rows = 0;
  bytes = 0;
  private total = 0n;

  add(encoded: Buffer): void {
    this.rows += 1;
    this.bytes += encoded.length;
    const digest = createHash('sha256')
      .update(encoded)
      .digest('hex')
      .slice(0, Number(sumBits) / 4);
    this.total = BigInt.asUintN(Number(sumBits), this.total + BigInt(`0x${digest}`));
  }

  get sum(): string {
    return this.total.toString(16).padStart(Number(sumBits) / 4, '0');
  }
}
