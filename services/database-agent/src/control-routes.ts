import { type ControlRoute, changeSchema, controlRoutesOf, done, ok } from '@drydock/agent/control';
import {
  DatabaseHostError,
  databaseDescriptionSchema,
  databaseHostProtocol,
  ensureDatabaseSchema,
  hostMajorsSchema,
  hostStorageSchema,
  judgementSchema,
  precheckSchema,
  prepareTargetSchema,
  storageAnswerSchema,
  upgradeSchema,
} from '@drydock/agent/database';
import { isDiskFull } from '@drydock/agent/jobs';
import type { z } from 'zod';
import { precheck } from './database-jobs';
import type { HostedDatabases, Known } from './databases/hosted-databases';
import { installedMajors } from './databases/instance';
import { switchOver } from './moves/switch-over';
import { abandonUpgrade, blockWrites, prepareTarget, restOld, retireOld } from './moves/upgrade-changes';

/**
 * Makes a route answer `no_space` for a full disk. It is only for calls before the point of no return. The workflow of
 * such a call then fails at once and leaves everything as it was.
 */
const refusingFullDisk = (route: ControlRoute): ControlRoute => ({
  ...route,
  handle: (values, body) =>
    route.handle(values, body).catch((error: unknown) => {
      throw isDiskFull(error) ? new DatabaseHostError('no_space', String(error), { cause: error }) : error;
    }),
});

/** The routes of the control protocol, one for each call. `jobRoutesOf` makes the routes of jobs. */
export function controlRoutes(databases: HostedDatabases): ControlRoute[] {
  const { route, hostRoute, change } = controlRoutesOf(databaseHostProtocol.things, databases);
  const upgrade = (
    rest: string,
    work: (known: Known, body: z.infer<typeof upgradeSchema>) => Promise<unknown>,
  ): ControlRoute => change(`POST /upgrade/${rest}`, { op: `post_upgrade_${rest}`, body: upgradeSchema }, work);
  return [
    hostRoute('GET /engines', async () => ok({ majors: await installedMajors() }), hostMajorsSchema),
    hostRoute('GET /storage', async () => ok({ databases: databases.readStorage() }), hostStorageSchema),
    route('PUT', async (id, body) => ok(await databases.ensure(id, ensureDatabaseSchema.parse(body)))),
    route('GET', async (id) => ok(await databases.describe(id)), databaseDescriptionSchema),
    route('GET /storage', async (id) => ok({ storage: databases.read(id).storage }), storageAnswerSchema),
    route('DELETE', async (id, body) => {
      await databases.destroy(id, changeSchema.parse(body));
      return done;
    }),
    route(
      'POST /precheck',
      async (id, body) => {
        const { to_major: toMajor, with_trial: withTrial } = precheckSchema.parse(body);
        return ok(await precheck(databases, id, toMajor, withTrial));
      },
      judgementSchema,
    ),
    refusingFullDisk(
      change('POST /upgrade', { op: 'post_upgrade', body: prepareTargetSchema }, ({ database }, wanted) =>
        prepareTarget(database, wanted),
      ),
    ),
    upgrade('block', ({ database }, { upgrade_id, fence }) => blockWrites(database, upgrade_id, fence)),
    upgrade('cutover', ({ database }, { upgrade_id, fence }) => switchOver(database, upgrade_id, fence)),
    upgrade('rest', ({ database }, { upgrade_id }) => restOld(database, upgrade_id)),
    upgrade('retire', ({ database }, { upgrade_id }) => retireOld(database, upgrade_id)),
    upgrade('abandon', ({ database }, { upgrade_id, fence }) => abandonUpgrade(database, upgrade_id, fence)),
  ];
}
