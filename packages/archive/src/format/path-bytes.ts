/**
 * Names on Linux are bytes, not text. In this package a path is a "byte string" with one character (U+0000 to U+00FF)
 * for each byte. A byte string sorts like its bytes. The byte string of an ASCII path equals its text.
 */
export type ByteString = string;

/** Returns the UTF-8 bytes of a text as a byte string. */
export function bytesOfText(text: string): ByteString {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Returns the text of a byte string. Invalid UTF-8 becomes U+FFFD. */
export function textOfBytes(bytes: ByteString): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Returns a path for Node's file calls: a string for printable ASCII, otherwise a Buffer. */
export function fileCallPath(bytes: ByteString): string | Buffer {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1');
}

/**
 * Compares paths in the order of walks and indexes: a directory, its content, its next sibling. Siblings are ordered by
 * their bytes, with the slash before all other bytes. With this order, a check for duplicates and missing parents needs
 * to remember only the previous path and the open directories.
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

/** Returns `a/b` for `a/b/c`, and '' for `a`. */
export function parentPath(path: ByteString): ByteString {
  const at = path.lastIndexOf('/');
  return at < 0 ? '' : path.slice(0, at);
}

/** Returns `c` for `a/b/c`. */
export function lastName(path: ByteString): ByteString {
  return path.slice(path.lastIndexOf('/') + 1);
}

const slash = 0x2f;
/** ASCII text with control characters does not match. It takes the slower conversion, which has the same result. */
const printableAscii = /^[ -~]*$/;

function isAscii(text: string): boolean {
  return printableAscii.test(text);
}
