import { z } from 'zod';
import type { Api } from './api';

const workflowsSchema = z.object({
  data: z.array(
    z.looseObject({ error: z.looseObject({ title: z.string(), detail: z.string().optional() }).nullish() }),
  ),
});

/** The most earlier starts that failed with the same object. Each has an idempotency key of its own. */
const failuresMax = 50;

/**
 * Creates an object with an idempotency key, so that an interrupted seeding finds it again. An object that failed at an
 * earlier start would always be found by its key, so the next key creates another one. An object that fails now is the
 * caller's to handle. `failedAt` returns when the failed object was made, or null when it has not failed.
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

/** Why the latest work on an object failed, in the words that its owner is shown. */
export async function problemOf(api: Api, objectPath: string): Promise<string> {
  const [newest] = workflowsSchema.parse((await api(`${objectPath}/workflows`)).body).data;
  return newest?.error?.detail ?? newest?.error?.title ?? 'see the logs folder';
}
