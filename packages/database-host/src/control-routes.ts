import { changeSchema } from '@drydock/host-kit/control-protocol';
import { type ControlRoute, controlRoutesOf, done, ok } from '@drydock/host-kit/control-routes';
import type { z } from 'zod';
import type { HostedDatabases, Known } from './hosted-databases';
import {
  databaseHostProtocol,
  dropScratchSchema,
  ensureDatabaseSchema,
  precheckSchema,
  prepareTargetSchema,
  scratchRolesSchema,
  scratchSchema,
  upgradeSchema,
} from './protocol';
import { switchOver } from './switch-over';
import { abandonUpgrade, accessUpgrade, blockWrites, precheck, prepareTarget, restOld, retireOld } from './upgrade-changes';

/** The whole control protocol, one entry for each call. */
export function controlRoutes(databases: HostedDatabases): ControlRoute[] {
  const { route, change } = controlRoutesOf(databaseHostProtocol.things, databases);
  const upgrade = (rest: string, work: (known: Known, body: z.infer<typeof upgradeSchema>) => Promise<unknown>): ControlRoute =>
    change(`POST /upgrade/${rest}`, { op: `post_upgrade_${rest}`, body: upgradeSchema }, work);
  return [
    route('PUT', async (id, body) => ok(await databases.ensure(id, ensureDatabaseSchema.parse(body)))),
    route('GET', async (id) => ok(await databases.describe(id))),
    route('DELETE', async (id, body) => {
      await databases.destroy(id, changeSchema.parse(body));
      return done;
    }),
    route('POST /precheck', async (id, body) => ok(await precheck(databases.read(id), precheckSchema.parse(body).to_major))),
    change('POST /access', { op: 'post_access', body: changeSchema }, async ({ database }) => database.access()),
    change('POST /upgrade', { op: 'post_upgrade', body: prepareTargetSchema }, ({ database }, wanted) => prepareTarget(database, wanted)),
    upgrade('access', ({ database }, { upgrade_id }) => accessUpgrade(database, upgrade_id)),
    upgrade('block', ({ database }, { upgrade_id }) => blockWrites(database, upgrade_id)),
    upgrade('cutover', ({ database }, { upgrade_id }) => switchOver(database, upgrade_id)),
    upgrade('rest', ({ database }, { upgrade_id }) => restOld(database, upgrade_id)),
    upgrade('retire', ({ database }, { upgrade_id }) => retireOld(database, upgrade_id)),
    upgrade('abandon', ({ database }, { upgrade_id, fence }) => abandonUpgrade(database, upgrade_id, fence)),
    change('POST /scratch', { op: 'post_scratch', body: scratchSchema }, ({ scratches }, { scratch_id, major }) =>
      scratches.make(scratch_id, major),
    ),
    change('POST /scratch/roles', { op: 'post_scratch_roles', body: scratchRolesSchema }, ({ scratches }, { scratch_id, roles }) =>
      scratches.makeRoles(scratch_id, roles),
    ),
    change('DELETE /scratch', { op: 'delete_scratch', body: dropScratchSchema }, ({ scratches }, { scratch_id }) =>
      scratches.drop(scratch_id),
    ),
  ];
}
