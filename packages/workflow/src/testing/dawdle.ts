import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { workflow } from './workflow';

/** Takes its time, and stops at once when told to. With `poison` it kills its process, whichever. */
export const dawdle = workflow({ kind: 'dawdle', input: z.strictObject({ ms: z.number(), poison: z.boolean().optional() }) })
  .step('dawdle', {
    run: async ({ input, signal }) => {
      if (input.poison === true) process.kill(process.pid, 'SIGKILL');
      await sleep(input.ms, undefined, { signal });
      return { pid: process.pid };
    },
  })
  .build();
