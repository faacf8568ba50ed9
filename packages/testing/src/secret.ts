import { randomBytes } from 'node:crypto';

/** A secret in the form that our processes get: 32 bytes in hex. */
export const newSecret = (): string => randomBytes(32).toString('hex');
