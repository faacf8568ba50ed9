import { createDecipheriv, type Decipher } from 'node:crypto';
import { releaseMemory } from '../extract/release-memory';
import type { ArchiveKeys } from '../format/archive-keys';
import { headerBytes, ivAt, macBytes } from '../format/sealed-layout';
import { type CheckedFrame, frameBytesMax } from '../format/zstd-frame';

/** How much is decrypted in one call. It is small, so that the cipher returns little at a time. */
const stepBytes = 256 * 1024;

/** Decrypts the body of a verified object frame by frame, in one buffer, and never the whole body. */
export class DecryptedBody {
  private readonly bytes: Buffer;
  private readonly decipher: Decipher;
  private readonly end: number;
  private at = headerBytes;
  private readonly buffer: Buffer;
  private start = 0;
  private filled = 0;

  constructor(keys: ArchiveKeys, bytes: Buffer) {
    this.bytes = bytes;
    this.end = bytes.length - macBytes;
    this.decipher = createDecipheriv('aes-256-ctr', keys.encryption, bytes.subarray(ivAt, headerBytes));
    this.buffer = Buffer.allocUnsafeSlow(Math.min(this.end - headerBytes, frameBytesMax));
  }

  isEmpty(): boolean {
    return this.at === this.end && this.start === this.filled;
  }

  /** The next frame, as `check` measures it. Valid until the next call. */
  takeFrame(check: (bytes: Buffer) => CheckedFrame): { bytes: Buffer; rawBytes: number } {
    this.fill();
    const frame = check(this.buffer.subarray(this.start, this.filled));
    const bytes = this.buffer.subarray(this.start, this.start + frame.bytes);
    this.start += frame.bytes;
    return { bytes, rawBytes: frame.rawBytes };
  }

  /** Frees the memory of body and object. */
  release(): void {
    releaseMemory(this.buffer);
    releaseMemory(this.bytes);
  }

  private fill(): void {
    this.buffer.copyWithin(0, this.start, this.filled);
    this.filled -= this.start;
    this.start = 0;
    while (this.at < this.end && this.filled < this.buffer.length) {
      const step = Math.min(stepBytes, this.end - this.at, this.buffer.length - this.filled);
      const plain = this.decipher.update(this.bytes.subarray(this.at, this.at + step));
      this.filled += plain.copy(this.buffer, this.filled);
      this.at += step;
      releaseMemory(plain);
    }
  }
}
