import { randomBytes } from 'node:crypto';

/** Names this process among those that sign with the same secret. */
const signerId = randomBytes(12).toString('base64url');
const signed = new Map<string, number>();

/** The id of the next token from one process to another: who signed it, and its number. */
export function nextTokenId(issuer: string, audience: string): string {
  const line = `${issuer} ${audience}`;
  const number = (signed.get(line) ?? 0) + 1;
  signed.set(line, number);
  return `${signerId}.${number}`;
}

const tokenIdForm = /^([A-Za-z0-9_-]{16})\.([1-9]\d{0,14})$/;

/** Tokens of one signer may arrive this far out of order; an older number is refused unseen. 8 kB a signer. */
const windowNumbers = 65_536;
/** Far more processes than ever sign with one secret within a token's life. */
const signersMax = 1_024;
const sweptAbove = 64;

interface Window {
  highest: number;
  /** A bit for each of the last {@link windowNumbers} numbers, at the number modulo their count. */
  bits: Uint32Array;
  /** When the last token of this signer has expired for everybody. */
  untilSeconds: number;
}

/** A verified token as far as its memory goes. */
export interface UsedToken {
  iss: string;
  jti: string;
  iat: number;
}

/**
 * Which tokens a process has taken, so that each of them works once: a bit for each number of each signer, in memory
 * and at a constant cost.
 *
 * It is the memory of one process. After a restart it knows nothing, so that what was signed before it began is
 * refused. Another process of the same service knows nothing of it either: whoever has copied a token inside our
 * network can have the very same call carried out once by each of them within its 35 s.
 */
export interface ReplayMemory {
  /** Undefined: this is the first time. Otherwise why not. */
  refuse(token: UsedToken, nowSeconds: number): string | undefined;
}

export function createReplayMemory(options: { beganSeconds: number; toleranceSeconds: number; lifetimeSeconds: number }): ReplayMemory {
  const { beganSeconds, toleranceSeconds, lifetimeSeconds } = options;
  const windows = new Map<string, Window>();
  const open = (name: string, highest: number, nowSeconds: number): Window | undefined => {
    if (windows.size >= sweptAbove) for (const [old, { untilSeconds }] of windows) if (untilSeconds < nowSeconds) windows.delete(old);
    if (windows.size >= signersMax) return undefined;
    const window = { highest, bits: new Uint32Array(windowNumbers / 32), untilSeconds: 0 };
    windows.set(name, window);
    return window;
  };
  return {
    refuse: ({ iss, jti, iat }, nowSeconds) => {
      if (iat < beganSeconds - toleranceSeconds) return 'older than this process';
      const [, signer = '', digits] = tokenIdForm.exec(jti) ?? [];
      if (digits === undefined) return 'no id of ours';
      const number = Number(digits);
      // By issuer: who has the secret of one cannot use up the numbers of another.
      const name = `${iss} ${signer}`;
      const window = windows.get(name) ?? open(name, number, nowSeconds);
      if (window === undefined) return 'too many signers';
      if (number <= window.highest - windowNumbers) return 'too far behind';
      if (number > window.highest) advance(window, number);
      const at = number % windowNumbers;
      const bit = 1 << (at & 31);
      const word = window.bits[at >>> 5] ?? 0;
      if ((word & bit) !== 0) return 'used before';
      window.bits[at >>> 5] = word | bit;
      window.untilSeconds = Math.max(window.untilSeconds, iat + lifetimeSeconds + 2 * toleranceSeconds);
      return undefined;
    },
  };
}

/** Forgets what falls out of the window: each number's bit is cleared once, before it is used. */
function advance(window: Window, number: number): void {
  const { bits, highest } = window;
  if (number - highest >= windowNumbers) bits.fill(0);
  else {
    for (let next = highest + 1; next <= number; next += 1) {
      const at = next % windowNumbers;
      bits[at >>> 5] = (bits[at >>> 5] ?? 0) & ~(1 << (at & 31));
    }
  }
  window.highest = number;
}
