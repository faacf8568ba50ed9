import type { z } from 'zod';
import type { HostedDatabases } from './hosted-databases';
import {
  type Change,
  changeSchema,
  databaseIdSchema,
  dropScratchSchema,
  ensureDatabaseSchema,
  precheckSchema,
  prepareTargetSchema,
  scratchSchema,
  upgradeSchema,
} from './protocol';
import { switchOver } from './switch-over';
import { abandonUpgrade, accessUpgrade, blockWrites, precheck, prepareTarget, restOld, retireOld } from './upgrade-changes';

export interface ControlAnswer {
  status: number;
  body?: unknown;
}

interface ControlRoute {
  method: string;
  pattern: RegExp;
  /** Throws a ZodError for what is not the protocol, and {@link DatabaseHostError}. */
  handle: (databaseId: string, body: unknown) => Promise<ControlAnswer>;
}

type Known = Parameters<Parameters<HostedDatabases['change']>[3]>[0];

const ok = (body: unknown): ControlAnswer => ({ status: 200, body });
const done: ControlAnswer = { status: 204 };

/** The whole control protocol, one entry for each call. */
export function controlRoutes(databases: HostedDatabases): ControlRoute[] {
  const route = (method: string, rest: string, handle: ControlRoute['handle']): ControlRoute => ({
    method,
    pattern: new RegExp(`^/control/databases/([^/]+)${rest}$`),
    handle: (id, body) => handle(databaseIdSchema.parse(id), body),
  });
  /** `rest` is the operation's name in the ledger too. */
  const change = <Body extends Change>(
    method: string,
    rest: string,
    schema: z.ZodType<Body>,
    work: (known: Known, body: Body) => Promise<unknown>,
  ) =>
    route(method, rest, async (id, body) => {
      const wanted = schema.parse(body);
      const op = `${method.toLowerCase()}_${rest.slice(1).replace('/', '_')}`;
      const answer = await databases.change(id, op, wanted, (known) => work(known, wanted));
      return answer === undefined ? done : ok(answer);
    });
  const upgrade = (rest: string, work: (known: Known, body: z.infer<typeof upgradeSchema>) => Promise<unknown>) =>
    change('POST', `/upgrade/${rest}`, upgradeSchema, work);
  return [
    route('PUT', '', async (id, body) => ok(await databases.ensure(id, ensureDatabaseSchema.parse(body)))),
    route('GET', '', async (id) => ok(await databases.describe(id))),
    route('DELETE', '', async (id, body) => {
      await databases.destroy(id, changeSchema.parse(body));
      return done;
    }),
    route('POST', '/precheck', async (id, body) => ok(await precheck(databases.read(id), precheckSchema.parse(body).to_major))),
    change('POST', '/access', changeSchema, async ({ database }) => database.access()),
    change('POST', '/upgrade', prepareTargetSchema, ({ database }, wanted) => prepareTarget(database, wanted)),
    upgrade('access', ({ database }, { upgrade_id }) => accessUpgrade(database, upgrade_id)),
    upgrade('block', ({ database }, { upgrade_id }) => blockWrites(database, upgrade_id)),
    upgrade('cutover', ({ database }, { upgrade_id }) => switchOver(database, upgrade_id)),
    upgrade('rest', ({ database }, { upgrade_id }) => restOld(database, upgrade_id)),
    upgrade('retire', ({ database }, { upgrade_id }) => retireOld(database, upgrade_id)),
    upgrade('abandon', ({ database }, { upgrade_id, fence }) => abandonUpgrade(database, upgrade_id, fence)),
    change('POST', '/scratch', scratchSchema, ({ scratches }, { scratch_id, major }) => scratches.make(scratch_id, major)),
    change('DELETE', '/scratch', dropScratchSchema, ({ scratches }, { scratch_id }) => scratches.drop(scratch_id)),
  ];
}
