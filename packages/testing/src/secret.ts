import { randomBytes } from 'node:crypto';

/** Returns a secret like those of processes: 32 bytes in hex. */
export const newSecret = (): string => randomBytes(32).toString('hex');
