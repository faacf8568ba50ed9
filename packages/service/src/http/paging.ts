import { createHmac, timingSafeEqual } from 'node:crypto';
import { problem } from '@drydock/contracts/platform/problem';
import type { PageMeta } from '@drydock/contracts/platform/values';
import type { Caller } from '../access/internal-token';
import type { CurrentFirst } from '../process/secrets';

const limitDefault = 50;
const limitMax = 100;
const cursorHours = 72;
/** The longest cursor that is decoded. A genuine one has about 100 characters. */
const cursorLengthMax = 512;
const macBytes = 16;
/** The most digits of a limit. */
export const limitLengthMax = 15;
const limitForm = /^[0-9]{1,15}$/;

/** The list that a cursor belongs to. A list that is read with another API key or filter counts as another list. */
export interface PageBinding {
  /** The endpoint's id. */
  list: string;
  keyId: string;
  /** The filter of the request, as a text that is always the same for the same filter; '' if there is none. */
  filter: string;
}

/**
 * The filter of a list: its owner, and the whole query without `cursor` and `limit`. `of` is the id of the resource
 * that the list belongs to, such as a site; '' for a list of the whole organisation.
 */
export function listFilter(
  caller: Pick<Caller, 'orgId' | 'mode'>,
  query: Readonly<Record<string, unknown>> = {},
  of = '',
): string {
  const { cursor: _cursor, limit: _limit, ...narrowed } = query;
  return JSON.stringify([caller.orgId, caller.mode, of, narrowed]);
}

export interface PageRequest {
  limit: number;
  /** The position of the last item of the previous page; null on the first page. */
  after: string | null;
}

export interface Page<Item> {
  data: Item[];
  page: PageMeta;
}

export interface Pager {
  /**
   * Reads `limit` and `cursor`. Throws 422 `invalid_limit` for every wrong limit, and `invalid_cursor` for every wrong
   * cursor.
   */
  read(
    query: { limit?: string | undefined; cursor?: string | undefined },
    binding: PageBinding,
    now: Date,
  ): PageRequest;
  /**
   * Makes a page from up to `limit + 1` rows. The caller reads one row more than the page has, so that `has_more` needs
   * no count.
   */
  pageOf<Row, Item>(
    rows: readonly Row[],
    request: PageRequest,
    binding: PageBinding,
    now: Date,
    give: { positionOf(row: Row): string; view(row: Row): Item },
  ): Page<Item>;
}

/**
 * Makes a pager. Each of `keys` has 32 bytes. They come from `deriveKeys(SERVICE_SECRET, 'cursor')`, so every process
 * of the service has the same keys.
 */
export function createPager(keys: CurrentFirst<Buffer>): Pager {
  const macOf = (key: Buffer, payload: string, binding: PageBinding): Buffer =>
    createHmac('sha256', key)
      .update(JSON.stringify([binding.list, binding.keyId, binding.filter, payload]))
      .digest()
      .subarray(0, macBytes);
  const seal = (position: string, binding: PageBinding, now: Date): string => {
    const payload = Buffer.from(JSON.stringify([Math.floor(now.getTime() / 1000), position])).toString('base64url');
    return `${payload}.${macOf(keys[0], payload, binding).toString('base64url')}`;
  };
  const open = (cursor: string, binding: PageBinding, now: Date): string => {
    const [payload = '', mac = '', ...rest] = cursor.length > cursorLengthMax ? [] : cursor.split('.');
    const given = Buffer.from(mac, 'base64url');
    // A cursor must be encoded exactly as this service encodes it. Another encoding of the same bytes is refused.
    const genuine =
      rest.length === 0 &&
      given.length === macBytes &&
      given.toString('base64url') === mac &&
      keys.some((key) => timingSafeEqual(given, macOf(key, payload, binding)));
    if (!genuine) throw problem('invalid_cursor');
    const [sealedSeconds, position]: [number, string] = JSON.parse(Buffer.from(payload, 'base64url').toString());
    if (now.getTime() / 1000 - sealedSeconds > cursorHours * 3_600) throw problem('invalid_cursor');
    return position;
  };
  return {
    read: ({ limit, cursor }, binding, now) => ({
      limit: readLimit(limit),
      after: cursor === undefined ? null : open(cursor, binding, now),
    }),
    pageOf: (rows, { limit }, binding, now, { positionOf, view }) => {
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      const has_more = rows.length > limit;
      const next_cursor = has_more && last !== undefined ? seal(positionOf(last), binding, now) : null;
      return { data: shown.map(view), page: { next_cursor, has_more, limit } };
    },
  };
}

function readLimit(limit: string | undefined): number {
  if (limit === undefined) return limitDefault;
  const value = limitForm.test(limit) ? Number(limit) : 0;
  if (value < 1) throw problem('invalid_limit');
  return Math.min(value, limitMax);
}
