import { z } from 'zod';

/** Asks the sites that came back from their deletion and did not serve whether they do now. */
export const checkServingHead = {
  kind: 'check_serving',
  input: z.strictObject({}),
  steps: [{ name: 'check' }],
} as const;
