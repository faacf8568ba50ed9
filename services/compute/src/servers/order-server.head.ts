import { z } from 'zod';

/** What the request and the worker agree on: name, input and steps, so that they can be seen while the workflow is queued. */
export const orderServerHead = {
  kind: 'order_server',
  input: z.strictObject({ deployTarget: z.string(), spec: z.string(), image: z.string(), zone: z.string() }),
  steps: [{ name: 'prepare' }, { name: 'create' }, { name: 'follow' }, { name: 'start' }, { name: 'observe' }],
} as const;
