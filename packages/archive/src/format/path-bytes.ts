/**
 * Names on Linux are bytes, not text. Inside this package a path is a "byte string": one character (U+0000 to U+00FF)
 * per byte. It compares, sorts and measures as the bytes do, and an ASCII path is equal to its text.
 */
export type ByteString = string;

/** UTF-8 bytes of a text as a byte string. */
export function bytesOfText(text: string): ByteString {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of a byte string. Bytes that are not UTF-8 become U+FFFD. */
export function textOfBytes(bytes: ByteString): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
}

/** A path as Node's file calls take it: the string itself if its bytes are the same, otherwise a Buffer. */
export function fileCallPath(bytes: ByteString): string | Buffer {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1');
}

/**
 * The order of every walk and index: a directory, then everything below it, then its next sibling. Siblings are ordered
 * by their bytes. This is the order of the paths' bytes with the slash before all other bytes. It allows duplicates and
 * missing parents to be found with only the previous path.
 */
export function comparePaths(left: ByteString, right: ByteString): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const leftByte = left.charCodeAt(at);
    const rightByte = right.charCodeAt(at);
    if (leftByte === rightByte) continue;
    if (leftByte === slash) return -1;
    return rightByte === slash || leftByte > rightByte ? 1 : -1;
  }
  return left.length - right.length;
}

/** `a/b` of `a/b/c`, '' of `a`. */
export function parentPath(path: ByteString): ByteString {
  const at = path.lastIndexOf('/');
  return at < 0 ? '' : path.slice(0, at);
}

/** `c` of `a/b/c`. */
export function lastName(path: ByteString): ByteString {
  return path.slice(path.lastIndexOf('/') + 1);
}

const slash = 0x2f;
/** Control characters are left out only because that loses nothing. */
const printableAscii = /^[ -~]*$/;

function isAscii(text: string): boolean {
  return printableAscii.test(text);
}
