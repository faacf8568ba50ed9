/**
 * Alters each kind of object in each copy of a chain, and expects that no restore uses the chain.
 *
 * @tier long
 * @processes
 */
import { createHash } from 'node:crypto';
import { ended } from '@drydock/service/testing/follow-workflow';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf } from '@drydock/service/testing/service-api';
import { isChaos, serviceBackends } from '@drydock/testing/scope';
import { makeSite } from '../../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld, restoreCopy } from '../../test/offsite-world';
import { fillSite, type SiteState, stateOf } from '../../test/site-state';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Flips a bit in the byte at `fraction` of an object. */
const flipAt =
  (fraction: number) =>
  (bytes: Buffer): Buffer => {
    const at = Math.min(bytes.length - 1, Math.floor(bytes.length * fraction));
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    return changed;
  };
const flipByte = (at: number) => (bytes: Buffer) => flipAt(at / bytes.length)(bytes);

/** Changes in the header, IV, body and MAC of a sealed object. In a manifest the same offsets are in lines of text. */
const changes: ReadonlyArray<[string, (bytes: Buffer) => Buffer]> = [
  ['a bit flipped in the first byte', flipByte(0)],
  ['a bit flipped in its length', flipByte(13)],
  ['a bit flipped in its IV', flipByte(60)],
  ['a bit flipped in the middle', flipAt(0.5)],
  ['a bit flipped in its MAC', flipAt(1)],
  ['the last byte cut off', (bytes) => bytes.subarray(0, -1)],
  ['all but a byte cut off', (bytes) => bytes.subarray(0, 1)],
  ['nothing in it', () => Buffer.alloc(0)],
  ['a byte appended', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)])],
  ['itself appended', (bytes) => Buffer.concat([bytes, bytes])],
];
const names = ['manifest', 'index-00000000', 'segment-00000000'];

describe('a chain that was altered at its destination', () => {
  let world: OffsiteWorld;
  let siteId: string;
  let copies: string[];
  let before: SiteState;
  beforeAll(async () => {
    world = await openOffsiteWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    world.spawnWorker();
    siteId = await makeSite(world);
    await world.configure(siteId);
    copies = [];
    for (const version of [1, 2, 3]) {
      await fillSite(world, siteId, version);
      copies.push(await world.copy(siteId, version === 1 ? 'full' : 'incremental'));
    }
    await fillSite(world, siteId, 4);
    before = await stateOf(world, siteId);
  });
  afterAll(() => world.close());

  const keyOf = (at: number, name: string): string => {
    const key = world.keys(`${siteId}/${copies[at]}/`).find((candidate) => candidate.endsWith(`/${name}`));
    if (key === undefined) throw new Error(`copy ${at} has no ${name}`);
    return key;
  };
  const newest = (): string => copies.at(-1) ?? '';
  /**
   * Resolves with the refusal of the request or of the worker. Expects that the site is unchanged and that its host was
   * asked for no change.
   */
  const refusedAs = async (): Promise<unknown> => {
    const outcome = await restoreCopy(world, siteId, newest());
    if ('steps' in outcome) {
      expect(outcome.status).toBe('failed');
      expect(world.ledger().filter(({ workflowId }) => workflowId === outcome.id)).toEqual([]);
    }
    expect(await stateOf(world, siteId)).toEqual(before);
    return 'steps' in outcome ? outcome.error?.code : refusalOf(outcome);
  };
  /** Changes objects and resolves with the refusal of a restore. Then writes the original objects back. */
  const refusalWith = async (
    altered: ReadonlyArray<[key: string, change: (bytes: Buffer) => Buffer]>,
  ): Promise<unknown> => {
    const originals = altered.map(([key]): [string, Buffer] => [key, world.readObject(key)]);
    for (const [key, change] of altered) await world.putObject(key, change(world.readObject(key)));
    try {
      return await refusedAs();
    } finally {
      for (const [key, bytes] of originals) await world.putObject(key, bytes);
    }
  };
  describe.each([0, 1, 2])('in archive %d of 3', (at) => {
    const all = names.flatMap((name, row) =>
      changes.map(([what, change], column) => ({ case: [name, what, change] as const, row, column })),
    );
    // Only chaos runs take all cases. Other runs take a third, spread over objects and changes.
    const taken = all.filter(({ row, column }) => isChaos || (at + row + column) % 3 === 0);
    it.each(taken.map(({ case: example }) => example))(
      'by its %s with %s is refused before a byte of it is used',
      async (name, _what, change) => {
        expect(['copy_tampered', '422 copy_tampered']).toContain(await refusalWith([[keyOf(at, name), change]]));
      },
    );
  });

  it('by one object of an archive in the place of another’s is refused', async () => {
    const other = world.readObject(keyOf(0, 'segment-00000000'));
    expect(await refusalWith([[keyOf(1, 'segment-00000000'), () => other]])).toBe('copy_tampered');
  });

  it('by two archives that changed places, each whole, is refused', async () => {
    const swapped = names.flatMap((name): Array<[string, () => Buffer]> => {
      const [first, second] = [world.readObject(keyOf(1, name)), world.readObject(keyOf(2, name))];
      return [
        [keyOf(1, name), () => second],
        [keyOf(2, name), () => first],
      ];
    });
    expect(await refusalWith(swapped)).toBe('422 copy_tampered');
  });

  it('by an older archive, whole and ours, in the place of a newer one is refused', async () => {
    const older = names.map((name): [string, () => Buffer] => {
      const bytes = world.readObject(keyOf(0, name));
      return [keyOf(2, name), () => bytes];
    });
    expect(await refusalWith(older)).toBe('422 copy_tampered');
    // With this checksum on record the request accepts the older archive. The worker refuses it, because its MAC is not
    // the recorded one.
    await world.api.rows(
      'UPDATE offsite_copies SET manifest_sha256 = (SELECT manifest_sha256 FROM offsite_copies WHERE id = $1) WHERE id = $2',
      [copies[0], copies[2]],
    );
    expect(await refusalWith(older)).toBe('copy_tampered');
    await world.api.rows('UPDATE offsite_copies SET manifest_sha256 = $1 WHERE id = $2', [
      sha256(world.readObject(keyOf(2, 'manifest'))),
      copies[2],
    ]);
  });

  it('by another site’s archive, whole and ours, is refused', async () => {
    const otherId = await makeSite(world);
    await fillSite(world, otherId, 7);
    await world.configure(otherId);
    const foreign = await world.copy(otherId, 'full');
    const theirs = names.map((name): [string, () => Buffer] => {
      const key = world.keys(`${otherId}/${foreign}/`).find((candidate) => candidate.endsWith(`/${name}`)) ?? '';
      const bytes = world.readObject(key);
      return [keyOf(0, name), () => bytes];
    });
    expect(await refusalWith(theirs)).toBe('422 copy_tampered');
    // The foreign archive is refused even if the copy's record was changed to match it.
    const columns = ['manifest_sha256', 'manifest_mac'];
    const kept = await world.api.rows('SELECT manifest_sha256, manifest_mac FROM offsite_copies WHERE id = $1', [
      copies[0],
    ]);
    for (const column of columns)
      await world.api.rows(
        `UPDATE offsite_copies SET ${column} = (SELECT ${column} FROM offsite_copies WHERE id = $1) WHERE id = $2`,
        [foreign, copies[0]],
      );
    expect(await refusalWith(theirs)).toBe('copy_tampered');
    await world.api.rows('UPDATE offsite_copies SET manifest_sha256 = $1, manifest_mac = $2 WHERE id = $3', [
      kept[0]?.['manifest_sha256'],
      kept[0]?.['manifest_mac'],
      copies[0],
    ]);
  });

  it('by a gap is refused by the request, listed as incomplete, and whole again once the archive is back', async () => {
    const store = world.s3.world.buckets.get('customer-copies');
    const key = keyOf(1, 'manifest');
    const [version] = store.versionsOf(key);
    if (version === undefined) throw new Error('no manifest');
    const bytes = world.readObject(key);
    store.remove(version);
    expect(await refusedAs()).toBe('422 copy_chain_incomplete');
    const statuses = (await world.stateOf(siteId)).copies.map(({ status }) => status);
    expect(statuses).toEqual(['incomplete_chain', 'incomplete_chain', 'completed']);
    await world.putObject(key, bytes);
    expect(await restoreCopy(world, siteId, newest())).toMatchObject({ status: 'succeeded' });
    expect((await world.stateOf(siteId)).copies.map(({ status }) => status)).toEqual([
      'completed',
      'completed',
      'completed',
    ]);
    expect((await stateOf(world, siteId)).page).toBe('200 file=3 row=3');
    await fillSite(world, siteId, 4);
    before = await stateOf(world, siteId);
  });

  it('is never continued by a new copy', async () => {
    const bytes = world.readObject(keyOf(2, 'manifest'));
    await world.putObject(keyOf(2, 'manifest'), flipAt(0.5)(bytes));
    const answer = await world.api.call('POST', `/v1/sites/${siteId}/offsite/copies`, {
      body: { kind: 'incremental' },
    });
    expect(await ended(world, answer.headers['location'])).toMatchObject({
      status: 'failed',
      error: { code: 'copy_tampered' },
    });
    await world.putObject(keyOf(2, 'manifest'), bytes);
    expect((await world.stateOf(siteId)).last_error_code).toBe('copy_tampered');
  });
});
