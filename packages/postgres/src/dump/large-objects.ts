import type pg from 'pg';
import { z } from 'zod';
import { TransferError } from '../session/transfer-error';

const partBytes = 256 * 1024;
const headerBytes = 8;
const objectSchema = z.object({ oid: z.number(), bytes: z.string() });
const readableSchema = z.object({ readable: z.boolean() });
const pageSchema = z.array(z.object({ page: z.number(), data: z.instanceof(Buffer) }));
const partSchema = z.object({ part: z.instanceof(Buffer) });

const readableSql = `select pg_catalog.has_table_privilege('pg_catalog.pg_largeobject', 'select') as readable,
  pg_catalog.current_setting('block_size')::int / 4 as page_bytes`;
/** Selects the stored pages of one part of an object. `readPages` leaves zeros where a page is missing. */
const pagesSql = `select pageno as page, data from pg_catalog.pg_largeobject where loid = $1 and pageno >= $2
  and pageno < $3 order by pageno`;
const sizeSql = `select m.oid, coalesce((select l.pageno::bigint * $1 + pg_catalog.length(l.data)
    from pg_catalog.pg_largeobject l
  where l.loid = m.oid order by l.pageno desc limit 1), 0)::bigint as bytes from pg_catalog.pg_largeobject_metadata m
  order by m.oid`;
const ownSql = 'select m.oid, 0::bigint as bytes from pg_catalog.pg_largeobject_metadata m order by m.oid';

/**
 * Yields all large objects, ordered by oid, as parts `oid:u32 length:u32 bytes`. An empty object is one part of length
 * 0. A reader (`makeReader`) reads the pages in pg_largeobject, because lo_get needs a right on each object. A
 * database's owner uses lo_get, because an owner may not read pg_largeobject.
 */
export async function* readLargeObjects(client: pg.ClientBase, onObject: () => void): AsyncGenerator<Buffer> {
  const { readable, page_bytes: pageBytes } = readableSchema
    .extend({ page_bytes: z.number() })
    .parse((await client.query(readableSql)).rows[0]);
  const { rows } = readable ? await client.query(sizeSql, [pageBytes]) : await client.query(ownSql);
  for (const { oid, bytes } of z.array(objectSchema).parse(rows)) {
    const readPart = (offset: number): Promise<Buffer> =>
      readable ? readPages(client, { oid, offset, bytes: Number(bytes), pageBytes }) : readOwn(client, oid, offset);
    for (let offset = 0; ; offset += partBytes) {
      const part = await readPart(offset);
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

async function readOwn(client: pg.ClientBase, oid: number, offset: number): Promise<Buffer> {
  const answer = await client.query('select pg_catalog.lo_get($1::oid, $2::bigint, $3::int) as part', [
    oid,
    offset,
    partBytes,
  ]);
  return partSchema.parse(answer.rows[0]).part;
}

async function readPages(
  client: pg.ClientBase,
  { oid, offset, bytes, pageBytes }: { oid: number; offset: number; bytes: number; pageBytes: number },
): Promise<Buffer> {
  const part = Buffer.alloc(Math.max(0, Math.min(partBytes, bytes - offset)));
  if (part.length === 0) return part;
  const { rows } = await client.query(pagesSql, [oid, offset / pageBytes, (offset + partBytes) / pageBytes]);
  for (const { page, data } of pageSchema.parse(rows)) data.copy(part, page * pageBytes - offset);
  return part;
}

/** Splits a stream into its parts. Throws `dump_malformed` for a part that is too long or incomplete. */
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

/**
 * Writes large objects under their original oids, because rows refer to objects by oid. `clientOf` returns the client
 * of an object's owner. `spend` limits the wait for Postgres. Returns the number of objects.
 */
export async function writeLargeObjects(
  clientOf: (oid: number) => Promise<pg.ClientBase>,
  content: AsyncIterable<Buffer>,
  spend: (work: Promise<unknown>) => Promise<unknown> = (work) => work,
): Promise<number> {
  let objects = 0;
  let current = -1;
  let offset = 0;
  for await (const { oid, part } of splitParts(content)) {
    const client = await clientOf(oid);
    if (oid === current) {
      await spend(client.query('select pg_catalog.lo_put($1::oid, $2::bigint, $3::bytea)', [oid, offset, part]));
      offset += part.length;
      continue;
    }
    await spend(client.query('select pg_catalog.lo_from_bytea($1::oid, $2::bytea)', [oid, part]));
    current = oid;
    offset = part.length;
    objects++;
  }
  return objects;
}
