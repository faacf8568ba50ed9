import { randomBytes } from 'node:crypto';
import { compress, decompress } from '@mongodb-js/zstd';
import { reasonOf } from '../../test/memory-archive';
import { archiveKeysOf } from './archive-keys';
import { checkFrame, compressFrame, declareContentSize, openObject, sealFrames } from './sealed-object';

test('a frame declares its content size and still decodes', async () => {
  for (const size of [1, 255, 256, 70_000, 1 << 20]) {
    const raw = randomBytes(size);
    const frame = await compressFrame(raw);
    expect(checkFrame(frame, size)).toEqual({ bytes: frame.length, rawBytes: size });
    expect((await decompress(frame)).equals(raw)).toBe(true);
  }
});

test('a frame that declares more than allowed, nothing, or no size is refused', async () => {
  const frame = await compressFrame(Buffer.alloc(1000));
  expect(() => checkFrame(frame, 999)).toThrow('limit_exceeded');
  expect(() => checkFrame(frame.subarray(0, -1), 1000)).toThrow('mismatch');
  const undeclared = await compress(Buffer.alloc(1000), 3);
  expect(() => checkFrame(undeclared, 1000)).toThrow('without a content size');
  expect(() => checkFrame(declareContentSize(undeclared, 0), 1000)).toThrow('limit_exceeded');
});

/** Builds a frame of run-length blocks, each of which makes 128 kB from 4 bytes. */
function bomb(blocks: number, declared: number): Buffer {
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x58, 0, 0, 0, 0]);
  head.writeUInt32LE(declared, 6);
  const block = (last: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUIntLE((131_072 << 3) | (1 << 1) | last, 0, 3);
    return bytes;
  };
  return Buffer.concat([head, ...Array.from({ length: blocks }, (_, at) => block(at === blocks - 1 ? 1 : 0))]);
}

test('a bomb is refused before it is decoded, whether it declares its size or lies', async () => {
  const keys = archiveKeysOf(Buffer.alloc(32), Buffer.alloc(16), 'a');
  const place = { kind: 'segment', number: 0 } as const;
  expect((await decompress(bomb(8, 1 << 20))).length).toBe(1 << 20);
  for (const frame of [bomb(100_000, 1000), bomb(100_000, 4_000_000_000)]) {
    const { bytes, seal } = sealFrames(keys, place, [frame], 1 << 20);
    const started = performance.now();
    expect(await reasonOf(openObject(keys, place, bytes, seal))).toBe('limit_exceeded');
    expect(performance.now() - started).toBeLessThan(1000);
  }
});

test('an object with more or less content than it declares is refused', async () => {
  const keys = archiveKeysOf(Buffer.alloc(32), Buffer.alloc(16), 'a');
  const place = { kind: 'block', number: 3 } as const;
  for (const [declared, reason] of [
    [100, 'limit_exceeded'],
    [150, 'limit_exceeded'],
    [300, 'mismatch'],
  ] as const) {
    const frames = [await compressFrame(Buffer.alloc(100)), await compressFrame(Buffer.alloc(100))];
    const { bytes, seal } = sealFrames(keys, place, frames, declared);
    expect(await reasonOf(openObject(keys, place, bytes, seal))).toBe(reason);
  }
});

test('no object stands in for one of another kind or number', async () => {
  const keys = archiveKeysOf(Buffer.alloc(32), Buffer.alloc(16), 'a');
  const { bytes, seal } = sealFrames(keys, { kind: 'segment', number: 1 }, [await compressFrame(Buffer.from('x'))], 1);
  for (const place of [{ kind: 'segment', number: 2 } as const, { kind: 'block', number: 1 } as const]) {
    expect(await reasonOf(openObject(keys, place, Buffer.from(bytes), seal))).toBe('mismatch');
  }
});
