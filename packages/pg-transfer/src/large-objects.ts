import type pg from 'pg';
import { z } from 'zod';
import { TransferError } from './transfer-error';

const partBytes = 256 * 1024;
const headerBytes = 8;
const oidSchema = z.array(z.object({ oid: z.number() }));
const partSchema = z.object({ part: z.instanceof(Buffer) });

/**
 * All large objects, by number: a run of parts `oid:u32 length:u32 bytes`, those of one object in order. An empty object is one part of length 0.
 */
export async function* readLargeObjects(client: pg.ClientBase, onObject: () => void): AsyncGenerator<Buffer> {
  const { rows } = await client.query('select oid from pg_catalog.pg_largeobject_metadata order by oid');
  for (const { oid } of oidSchema.parse(rows)) {
    for (let offset = 0; ; offset += partBytes) {
      const answer = await client.query('select pg_catalog.lo_get($1::oid, $2::bigint, $3::int) as part', [oid, offset, partBytes]);
      const { part } = partSchema.parse(answer.rows[0]);
      if (part.length === 0 && offset > 0) break;
      const header = Buffer.alloc(headerBytes);
      header.writeUInt32BE(oid, 0);
      header.writeUInt32BE(part.length, 4);
      yield Buffer.concat([header, part]);
      if (part.length < partBytes) break;
    }
    onObject();
  }
}

/** Cuts a stream into parts again. Throws `dump_malformed` for one that is too long or unfinished. */
async function* splitParts(content: AsyncIterable<Buffer>): AsyncGenerator<{ oid: number; part: Buffer }> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const chunk of content) {
    pending = pending.length > 0 ? Buffer.concat([pending, chunk]) : chunk;
    while (pending.length >= headerBytes) {
      const length = pending.readUInt32BE(4);
      if (length > partBytes) throw new TransferError('dump_malformed', 'a part of a large object is too long');
      if (pending.length < headerBytes + length) break;
      yield { oid: pending.readUInt32BE(0), part: pending.subarray(headerBytes, headerBytes + length) };
      pending = pending.subarray(headerBytes + length);
    }
  }
  if (pending.length > 0) throw new TransferError('dump_malformed', 'the last large object is cut off');
}

/** Writes large objects under their old numbers, which rows refer to. Returns how many. */
export async function writeLargeObjects(client: pg.ClientBase, content: AsyncIterable<Buffer>): Promise<number> {
  let objects = 0;
  let current = -1;
  let offset = 0;
  for await (const { oid, part } of splitParts(content)) {
    if (oid === current) {
      await client.query('select pg_catalog.lo_put($1::oid, $2::bigint, $3::bytea)', [oid, offset, part]);
      offset += part.length;
      continue;
    }
    await client.query('select pg_catalog.lo_from_bytea($1::oid, $2::bytea)', [oid, part]);
    current = oid;
    offset = part.length;
    objects++;
  }
  return objects;
}
