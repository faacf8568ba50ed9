import type { DatabaseEngine, getDatabaseCatalogue as endpoint } from '@drydock/contracts/databases/databases';
import type { Major } from '@drydock/contracts/databases/major';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { catalogueOf, findVersion } from './catalogue';

/** While the host does not answer, only the versions that do not depend on it are offered. */
export const getCatalogue = ({ provider }: HandlerContext) =>
  ({
    read: async () => ({ status: 200, body: catalogueOf(await provider.listMajors().catch(() => [])) }),
  }) satisfies ReadHandlers<typeof endpoint>;

/**
 * The majors whose programs the host has, read only if the request depends on them: Postgres' programs are everywhere.
 */
export async function majorsFor(
  { provider }: HandlerContext,
  { engine, engine_version: version }: { engine: DatabaseEngine; engine_version: string },
): Promise<readonly Major[]> {
  if (engine === 'postgres' || findVersion(engine, version) === undefined) return [];
  try {
    return await provider.listMajors();
  } catch (error) {
    throw problem('dependency_unavailable', {
      extra: { dependency: 'database-host' },
      retryAfterSeconds: 30,
      cause: error,
    });
  }
}
