import { randomBytes } from 'node:crypto';

/** Identifies this process among those that sign with the same secret. */
const signerId = randomBytes(12).toString('base64url');
const signed = new Map<string, number>();

/** The id of the next token from one process to another: its signer, and its number. */
export function nextTokenId(issuer: string, audience: string): string {
  const line = `${issuer} ${audience}`;
  const number = (signed.get(line) ?? 0) + 1;
  signed.set(line, number);
  return `${signerId}.${number}`;
}

const tokenIdForm = /^([A-Za-z0-9_-]{16})\.([1-9]\d{0,14})$/;

/** Tokens of one signer may arrive this far out of order; an older number is refused. 8 kB for each signer. */
const windowNumbers = 65_536;
/** A number far above that of the processes that ever sign with one secret within a token's life. */
const signersMax = 1_024;
const sweptAbove = 64;

interface Window {
  highest: number;
  /** A bit for each of the last {@link windowNumbers} numbers, at the number modulo their count. */
  bits: Uint32Array;
  /** The time when the last token of this signer has expired for everybody. */
  untilSeconds: number;
}

/** The part of a verified token that its memory needs. */
interface UsedToken {
  iss: string;
  jti: string;
  iat: number;
}

/**
 * Remembers the tokens that a process has accepted, so that each works once: a bit for each number of each signer, in
 * memory and at constant cost.
 * It is the memory of one process. After a restart it is empty, so tokens signed before the start are refused. Other
 * processes of the same service do not share it: an attacker who copies a token inside our network can have the same
 * call carried out once by each of them within its 35 s.
 */
export interface ReplayMemory {
  /** Undefined for a token seen for the first time; otherwise the reason for its refusal. */
  refuse(token: UsedToken, nowSeconds: number): string | undefined;
}

export function createReplayMemory(options: {
  beganSeconds: number;
  toleranceSeconds: number;
  lifetimeSeconds: number;
}): ReplayMemory {
  const { beganSeconds, toleranceSeconds, lifetimeSeconds } = options;
  const windows = new Map<string, Window>();
  const open = (name: string, highest: number, nowSeconds: number): Window | undefined => {
    if (windows.size >= sweptAbove)
      for (const [old, { untilSeconds }] of windows) if (untilSeconds < nowSeconds) windows.delete(old);
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
      // The name includes the issuer, so that the holder of one secret cannot use up the numbers of another.
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

/** Clears the bits of numbers that enter the window: each is cleared once, before it is used. */
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
