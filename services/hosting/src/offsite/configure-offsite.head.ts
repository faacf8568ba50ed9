import { z } from 'zod';

/** The place that is tried lies, with its sealed credentials, in the row that the input names. */
export const configureOffsiteHead = {
  kind: 'configure_offsite',
  input: z.strictObject({ destinationId: z.uuid() }),
  steps: [{ name: 'probe' }],
} as const;
