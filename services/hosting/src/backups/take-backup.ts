import type { takeSiteBackup as endpoint } from '@drydock/contracts/backups';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { acceptWorkflow, followHeaders } from '../site-workflows/accept-workflow';
import { assertAllowed } from '../site-workflows/refuse';
import { findUnfinished } from '../site-workflows/unfinished.store';
import { holdSite } from '../sites/find-site';
import { allowanceOf, allowanceWindowStart, refuseBackup } from './backup.rules';
import { insertBackup, listOnDemand } from './backup.store';
import { readSurface } from './backup-surface';
import { takeBackupHead } from './take-backup.head';

export const takeBackup = (context: HandlerContext) =>
  ({
    act: async (tx: Tx, request) => {
      const { now } = request;
      const site = await holdSite(tx, request);
      const unfinished = await findUnfinished(tx, site.id);
      const allowance = allowanceOf(await listOnDemand(tx, site.id, allowanceWindowStart(now)), now);
      assertAllowed(refuseBackup({ site, unfinished }, allowance, now));
      const backupId = uuidv7();
      const acceptance = { definition: takeBackupHead, input: { backupId, platform: site.platform }, action: 'backup.take' };
      const workflowId = await acceptWorkflow(context, tx, request, site, acceptance);
      await insertBackup(tx, site, { id: backupId, siteId: site.id, kind: 'on_demand', workflowId, createdAt: now });
      return { status: 202, headers: followHeaders(site.id, workflowId), body: await readSurface(context, tx, site, now) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, undefined>;
