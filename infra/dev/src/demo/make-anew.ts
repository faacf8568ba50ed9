import { z } from 'zod';
import type { Api } from './api';

const workflowsSchema = z.object({
  data: z.array(z.looseObject({ error: z.looseObject({ title: z.string(), detail: z.string().optional() }).nullish() })),
});

/** Earlier starts that failed with the same object; each has an idempotency key of its own. */
const failuresMax = 50;

/**
 * Makes an object by an idempotency key, so that an interrupted seeding finds it again. One that failed at an earlier start would be found by its key
 * for ever: the next key makes another. One that fails now is left to the caller. `failedAt`: when the object that failed was made; null while it has not.
 */
export async function makeAnew<T>(
  key: string,
  make: (idempotencyKey: string) => Promise<T>,
  failedAt: (made: T) => Promise<string | null>,
): Promise<T> {
  const begunAt = Date.now();
  for (let failures = 0; failures < failuresMax; failures += 1) {
    const made = await make(failures === 0 ? key : `${key}-again-${failures}`);
    const at = await failedAt(made);
    if (at === null || Date.parse(at) >= begunAt) return made;
  }
  throw new Error(`${key} has failed ${failuresMax} times; see the logs folder`);
}

/** Why the newest work on an object failed, as its owner is told. */
export async function problemOf(api: Api, objectPath: string): Promise<string> {
  const [newest] = workflowsSchema.parse((await api(`${objectPath}/workflows`)).body).data;
  return newest?.error?.detail ?? newest?.error?.title ?? 'see the logs folder';
}
