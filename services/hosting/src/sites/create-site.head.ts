import { sitePlatformSchema } from '@drydock/contracts/sites';
import { z } from 'zod';

/** What the request and the worker agree on: name, input and steps, so that they can be seen while the workflow is queued. */
export const createSiteHead = {
  kind: 'create_site',
  input: z.strictObject({ domain: z.string(), platform: sitePlatformSchema }),
  steps: [{ name: 'provision' }, { name: 'probe' }],
} as const;
