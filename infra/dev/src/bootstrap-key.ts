import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { keysEnvironment } from './programs/keys';
import type { Surroundings } from './programs/program';
import { inRepo } from './repo-root';

const run = promisify(execFile);
const bootstrapSchema = z.object({ org_id: z.string(), key_id: z.string(), token: z.string() });

/** Runs the keys service's command: a root organisation of this name and its first key, whose token is shown here alone. */
export async function bootstrapKey(around: Surroundings, name: string): Promise<z.infer<typeof bootstrapSchema>> {
  const { stdout } = await run(process.execPath, [inRepo('services/keys/dist/bootstrap.js'), '--json', '--new-key', '--name', name], {
    env: { ...keysEnvironment(around), SERVICE_NAME: 'keys-bootstrap', LOG_LEVEL: 'silent' },
  });
  return bootstrapSchema.parse(JSON.parse(stdout));
}
