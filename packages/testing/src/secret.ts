import { randomBytes } from 'node:crypto';

/** Returns a random secret in the form that processes expect: 32 bytes in hex. */
export const newSecret = (): string => randomBytes(32).toString('hex');
