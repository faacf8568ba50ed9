import { z } from 'zod';
import type { Api } from './api';

const workflowsSchema = z.object({
  data: z.array(
    z.looseObject({ error: z.looseObject({ title: z.string(), detail: z.string().optional() }).nullish() }),
  ),
});

/** The most idempotency keys that are tried. Each failed object of an earlier start has used up one key. */
const failuresMax = 50;

/**
 * Creates an object with an idempotency key, so that an interrupted seeding finds it again. If the object with this key
 * was created at an earlier start and has failed, creates another object with another key. An object that was created
 * at this start is returned even if it has failed. `failedAt` returns the creation time of a failed object, or null if
 * the object has not failed.
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

/** Returns why the newest workflow of an object failed, in the words of the API. */
export async function problemOf(api: Api, objectPath: string): Promise<string> {
  const [newest] = workflowsSchema.parse((await api(`${objectPath}/workflows`)).body).data;
  return newest?.error?.detail ?? newest?.error?.title ?? 'see the logs folder';
}
