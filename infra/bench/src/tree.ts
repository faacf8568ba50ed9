import fs from 'node:fs';
import path from 'node:path';

/**
 * Returns the size of a file in bytes. As in real sites, most files are small and some have a megabyte. The mean size
 * is 11 kB.
 */
function sizeOf(number: number): number {
  if (number % 200 === 0) return 1 << 20;
  if (number % 10 === 0) return 32 << 10;
  return 1 << (9 + (number % 5));
}

/**
 * Returns the content of a file, which is the same in every run. Half of the files of each size compress like text. The
 * other half hardly compresses, like pictures.
 */
function contentOf(number: number, size: number): Buffer {
  const buffer = Buffer.alloc(size);
  const ofItsSize = Math.floor(number / 200) + Math.floor(number / 10) + number;
  if (ofItsSize % 2 === 0) {
    const line = `<p class="entry-${number}">The quick brown fox ${number} jumps over the lazy dog ${number * 7919}</p>\n`;
    buffer.fill(line);
    return buffer;
  }
  let state = (number * 2_654_435_761) >>> 0;
  for (let at = 0; at + 4 <= size; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    buffer.writeUInt32LE(state, at);
  }
  return buffer;
}

/** Creates `files` files below `root`, a hundred in each folder. Returns their total size in bytes. */
export function makeTree(root: string, files: number, sizeOfFile: (number: number) => number = sizeOf): number {
  let bytes = 0;
  for (let number = 0; number < files; number += 1) {
    const folder = path.join(root, `d${Math.floor(number / 10_000)}`, `s${Math.floor(number / 100)}`);
    if (number % 100 === 0) fs.mkdirSync(folder, { recursive: true });
    const size = sizeOfFile(number);
    fs.writeFileSync(path.join(folder, `f${number}.dat`), contentOf(number, size));
    bytes += size;
  }
  return bytes;
}
