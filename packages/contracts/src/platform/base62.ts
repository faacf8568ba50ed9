/** Digits, capitals, small letters: the order of ASCII. So texts of equal length sort as their numbers do. */
export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * A whole number from 0, padded with zeros to `length` characters. Throws RangeError when it does not fit or is not
 * such a number.
 */
export function base62(value: number, length: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError('base62 writes whole numbers from 0');
  let rest = value;
  let text = '';
  for (let place = 0; place < length; place += 1) {
    text = base62Alphabet.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  if (rest !== 0) throw new RangeError(`${value} does not fit in ${length} base62 characters`);
  return text;
}
