import { randomBytes } from 'node:crypto';

/** A secret as our processes are given one: 32 bytes of hex. */
export const newSecret = (): string => randomBytes(32).toString('hex');
