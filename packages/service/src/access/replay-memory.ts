import { randomBytes } from 'node:crypto';

/** Identifies this process among all processes that sign with the same secret. */
const signerId = randomBytes(12).toString('base64url');
const signed = new Map<string, number>();

/** The id of the next token from one process to another. It consists of the signer's id and a number. */
export function nextTokenId(issuer: string, audience: string): string {
  const line = `${issuer} ${audience}`;
  const number = (signed.get(line) ?? 0) + 1;
  signed.set(line, number);
  return `${signerId}.${number}`;
}

const tokenIdForm = /^([A-Za-z0-9_-]{16})\.([1-9]\d{0,14})$/;

/**
 * A token is refused if its number is this much, or more, below the highest number of its signer. Smaller gaps are
 * accepted, because tokens arrive out of order. The memory has one bit for each number: 8 kB for each signer.
 */
const windowNumbers = 65_536;
/** The most signers that are remembered. Far fewer processes sign with one secret in the lifetime of a token. */
const signersMax = 1_024;
const sweptAbove = 64;

interface Window {
  highest: number;
  /**
   * One bit for each of the last {@link windowNumbers} numbers. The index of a bit is its number modulo {@link
   * windowNumbers}.
   */
  bits: Uint32Array;
  /** The time after which every accepted token of this signer has expired. The window is then no longer needed. */
  untilSeconds: number;
}

interface UsedToken {
  iss: string;
  jti: string;
  iat: number;
}

/**
 * Remembers the tokens that a process has accepted, so that each token is accepted once. The memory is empty after a
 * restart, so tokens that were signed more than `toleranceSeconds` before the start are refused. Processes of one
 * service share no memory: each of them would accept a copy of the same token once.
 */
export interface ReplayMemory {
  /** Returns undefined for a new token, and remembers it. Otherwise returns the reason for its refusal. */
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
      // The name includes the issuer, so that one issuer cannot use up the numbers of another.
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

/** Clears the bits of the numbers that enter the window. These bits still hold what older numbers have set. */
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
