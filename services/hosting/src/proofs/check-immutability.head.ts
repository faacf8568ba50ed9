import { z } from 'zod';

/** providers.md 4: proves, by trying, that nobody can delete a backup; or finds out why not. */
export const checkImmutabilityHead = {
  kind: 'check_immutability',
  input: z.strictObject({}),
  steps: [{ name: 'clean_up' }, { name: 'plant' }, { name: 'read_back' }, { name: 'positive_control' }, { name: 'attack' }],
} as const;
