import {
  ancestryOf,
  type Copy,
  chainToContinue,
  copyToTake,
  indexCopies,
  rawBytesOf,
  refuseRestore,
  restorableChain,
  roomInSpool,
} from './offsite.rules';
import { viewCopy } from './offsite-state';

const at = new Date('2026-03-01T00:00:00Z');
const copyOf = (id: string, parentId: string | null, sequence: number, change: Partial<Copy> = {}): Copy => ({
  id,
  destinationId: 'd',
  kind: parentId === null ? 'full' : 'incremental',
  status: 'completed',
  parentId,
  sequence,
  archive: { objectKey: id, sizeBytes: 1, rawBytes: 1, manifestSha256: id, manifestMac: id },
  streamBytes: null,
  skipped: { count: 0, sample: [] },
  answer: { httpStatus: 200, isSqlOk: true },
  createdAt: at,
  completedAt: at,
  verifiedAt: at,
  missingAt: null,
  ...change,
});
const ids = (chain: readonly Copy[] | null) => chain?.map(({ id }) => id) ?? null;
const [a, b, c] = [copyOf('a', null, 1), copyOf('b', 'a', 2), copyOf('c', 'b', 3)];

describe('a chain', () => {
  it('is read from its full copy on, whatever order the copies are in', () => {
    expect(ids(restorableChain([c, a, b], c))).toEqual(['a', 'b', 'c']);
    expect(ids(restorableChain([c, a, b], a))).toEqual(['a']);
  });

  it.each([
    ['a gap', [a, c], c],
    ['a base that is gone', [b, c], c],
    ['a missing archive', [copyOf('a', null, 1, { missingAt: at }), b, c], c],
    ['a copy that failed', [a, copyOf('b', 'a', 2, { status: 'failed', archive: null }), c], c],
    ['a copy that is its own ancestor', [copyOf('b', 'c', 2), copyOf('c', 'b', 3)], copyOf('c', 'b', 3)],
    ['a base that is incremental', [copyOf('a', 'z', 1), b, c], c],
  ])('with %s is not restored', (_what, copies, copy) => {
    const named = copies.find(({ id }) => id === copy.id) ?? copy;
    expect(restorableChain(copies, named)).toBeNull();
    expect(ancestryOf(indexCopies(copies), named).length).toBeLessThanOrEqual(copies.length);
  });

  it('is continued at the newest copy whose chain is whole', () => {
    expect(ids(chainToContinue([a, b, c]))).toEqual(['a', 'b', 'c']);
    expect(ids(chainToContinue([a, b, copyOf('c', 'b', 3, { missingAt: at })]))).toEqual(['a', 'b']);
    expect(ids(chainToContinue([a, b, c, copyOf('d', null, 4)]))).toEqual(['d']);
    expect(chainToContinue([copyOf('a', null, 1, { status: 'running', archive: null })])).toBeNull();
  });
});

/** A chain of this many copies, the full copy first. */
const chainOf = (links: number): Copy[] =>
  Array.from({ length: links }, (_, at) => copyOf(`c${at + 1}`, at === 0 ? null : `c${at}`, at + 1));

describe('a long chain', () => {
  it('of 3,000 copies is shown and continued with as many looks at copies as the answer names, and not their square', () => {
    let looks = 0;
    const counted = chainOf(3_000).map(({ id, ...copy }) => ({
      ...copy,
      get id() {
        looks += 1;
        return id;
      },
    }));
    const page = counted.slice(-5);
    const index = indexCopies(counted);
    const shown = page.map((copy) => viewCopy(index, copy));
    expect(shown.map(({ depends_on: needed, status }) => [needed.length, status])).toEqual(
      page.map((_, at) => [2_995 + at, 'completed']),
    );
    expect(restorableChain(counted, page[4] ?? a)).toHaveLength(3_000);
    expect(chainToContinue(counted)).toHaveLength(3_000);
    expect(chainToContinue(counted.slice(1))).toBeNull();
    expect(looks).toBeLessThan(20 * 3_000);
  });

  it('ends at 100 copies: the next incremental copy is a full one, and what is longer already is still restored', () => {
    expect(copyToTake(chainOf(99), 'incremental')).toEqual({ kind: 'incremental', parentId: 'c99' });
    for (const links of [100, 150]) {
      expect(copyToTake(chainOf(links), 'incremental')).toEqual({ kind: 'full', parentId: null });
      const copies = chainOf(links);
      expect(restorableChain(copies, copies.at(-1) ?? a)).toHaveLength(links);
      const begun = [...copies, copyOf('new', null, links + 1)];
      expect(copyToTake(begun, 'incremental')).toEqual({ kind: 'incremental', parentId: 'new' });
    }
    expect(copyToTake(chainOf(3), 'full')).toEqual({ kind: 'full', parentId: null });
  });
});

describe('the spool', () => {
  const mb = 2 ** 20;
  const of = (wholeMb: number, missingMb: number, promisedMb: number) => ({
    wholeBytes: wholeMb * mb,
    missingBytes: missingMb * mb,
    promisedBytes: promisedMb * mb,
  });

  it.each([
    ['now', 'what is missing fits', of(500, 400, 0), 464, 1_000],
    ['later', 'what is missing does not fit', of(500, 401, 0), 464, 1_000],
    ['later', 'another fetch has yet to write what it was promised', of(500, 400, 1), 464, 1_000],
    ['now', 'the whole chain fits into the empty spool', of(936, 936, 0), 1_000, 1_000],
    ['never', 'the whole chain would not fit into the empty spool', of(937, 10, 0), 1_000, 1_000],
  ])('has room %s if %s', (room, _why, needed, freeMb, totalMb) => {
    expect(roomInSpool(needed, { freeBytes: freeMb * mb, totalBytes: totalMb * mb })).toBe(room);
  });
});

describe('a restore of a chain', () => {
  const sized = (id: string, parentId: string | null, rawBytes: number, streamBytes: number | null) => {
    const archive = { objectKey: id, sizeBytes: 1, rawBytes, manifestSha256: id, manifestMac: id };
    return { ...copyOf(id, parentId, 1), archive, streamBytes };
  };

  it('writes every tree of the chain and the streams of the newest copy', () => {
    const chain = [sized('a', null, 1_000, 600), sized('b', 'a', 650, 620), sized('c', 'b', 700, 640)];
    expect(rawBytesOf(chain, 'local')).toBe(400 + 30 + 60 + 640);
    expect(rawBytesOf(chain.slice(0, 1), 'local')).toBe(1_000);
  });

  it('writes what a copy without a record of its streams holds, but over ssh only what the newest copy holds', () => {
    const chain = [sized('a', null, 1_000, null), sized('b', 'a', 650, 620), sized('c', 'b', 700, null)];
    expect(rawBytesOf(chain, 'local')).toBe(1_000 + 30 + 700);
    expect(rawBytesOf([sized('a', null, 1_000, null), sized('b', 'a', 900, null)], 'ssh')).toBe(900);
  });
});

describe('a restore is refused', () => {
  const destination = { id: 'd' };
  const world = {
    site: { status: 'active', platform: 'local' } as const,
    unfinished: null,
    destination,
    copies: [a, b, c],
  };
  const running = { id: 'w', kind: 'take_backup', status: 'running' } as const;

  it.each([
    ['copy_not_found', { ...world, unfinished: running }, null],
    ['operation_in_progress', { ...world, destination: null, copies: [], unfinished: running }, null],
    [
      'operation_in_progress',
      { ...world, unfinished: running },
      copyOf('r', null, 9, { status: 'running', archive: null }),
    ],
    ['operation_in_progress', { ...world, copies: [b, c], unfinished: running }, c],
    [
      'operation_in_progress',
      { ...world, unfinished: running, site: { status: 'restoring', platform: 'local' } as const },
      c,
    ],
    [
      'offsite_not_configured',
      { ...world, destination: null, copies: [], site: { status: 'failed', platform: 'local' } as const },
      null,
    ],
    ['copy_not_found', world, copyOf('f', null, 9, { status: 'failed', archive: null })],
    ['copy_chain_incomplete', { ...world, copies: [b, c], site: { status: 'failed', platform: 'local' } as const }, c],
    ['needs_attention', { ...world, unfinished: { ...running, status: 'needs_attention' } as const }, c],
    ['platform_unsupported', { ...world, site: { status: 'active', platform: 'vendor' } as const }, c],
    ['site_not_ready', { ...world, site: { status: 'failed', platform: 'local' } as const }, c],
  ])('with %s, in this order', (code, refused, copy) => {
    expect(refuseRestore(refused, copy)?.code).toBe(code);
  });

  it('by nothing else', () => {
    expect(refuseRestore(world, c)).toBeNull();
    expect(refuseRestore({ ...world, site: { status: 'suspended', platform: 'local' } }, a)).toBeNull();
  });
});
