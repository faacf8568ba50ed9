import type { deleteSite as deleteSiteEndpoint, preflightSiteDeletion } from '@drydock/contracts/hosting/sites';
import type { Finding } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { refusalByWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertFree, followHeaders, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import { findLeftBackup, findNewestBackup } from '../backups/backup.store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeSite } from '../providers/site-host';
import { unsupportedReasonOf } from '../sites/site.rules';
import { changeStatus } from '../sites/site.store';
import { onSite, type Site, sitePath, siteResourceKey } from '../sites/site.types';
import { holdSite, readSite, viewSite } from '../sites/site-record';
import { deleteSiteWorkflow } from './delete-site.workflow';

/** The source from which the deleted site can be restored: a last backup, an existing backup, or nothing. */
type Left = { kind: 'last'; isHostSilent: boolean } | { kind: 'existing'; id: string } | { kind: 'nothing' };

/**
 * Tells what would be left to restore the site from, and changes nothing. A host that does not answer is a finding, not
 * an error.
 */
export const preflightDeletion = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const refusal = refusalByWorkflow(await findUnfinished(context.database.sql(), siteResourceKey(site.id)));
      const left = await lookForLeft(context, site, request.query.last_backup === 'required', request.now);
      const rest =
        left.kind === 'nothing' ? 'It cannot come back' : 'It can come back until the record of its deletion is purged';
      const body = {
        would: `Remove ${site.primaryDomain} with its files and its database from its host. ${rest}`,
        resource: sitePath(site.id),
        point: null,
        space: null,
        refusal: refusal === null ? null : problemOf(refusal).body(request.requestId),
        findings: findingsOf(left),
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof preflightSiteDeletion>;

async function lookForLeft(
  { database, siteHosts }: HandlerContext,
  site: Site,
  takesBackup: boolean,
  now: Date,
): Promise<Left> {
  // On a platform without backups a deleted site cannot be restored.
  if (unsupportedReasonOf(site.platform) !== '') return { kind: 'nothing' };
  const kept = await findLeftBackup(database.pool, site.id);
  if (kept !== null) return { kind: 'existing', id: kept };
  const hosted = takesBackup ? await describeSite(siteHosts, site).catch(() => 'silent' as const) : null;
  if (hosted === 'silent') return { kind: 'last', isHostSilent: true };
  if (hosted !== null) return { kind: 'last', isHostSilent: false };
  const id = await findNewestBackup(database.pool, site.id, now);
  return id === null ? { kind: 'nothing' } : { kind: 'existing', id };
}

function findingsOf(left: Left): Finding[] {
  if (left.kind === 'nothing')
    return [{ level: 'WARNING', code: 'no_backup', detail: 'Nothing is left to restore the site from.' }];
  if (left.kind === 'existing')
    return [
      {
        level: 'WARNING',
        code: 'no_last_backup',
        detail: `No last backup is taken: everything written since the backup ${left.id} is lost.`,
      },
    ];
  return left.isHostSilent
    ? [
        {
          level: 'WARNING',
          code: 'host_unreachable',
          detail: "The site's host does not answer; the deletion waits for it.",
        },
      ]
    : [];
}

export const deleteSite = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const site = await holdSite(tx, request);
      await assertFree(context.database.sql(tx), siteResourceKey(site.id));
      const input = {
        backupId: uuidv7(),
        deletedSiteId: uuidv7(),
        deletedBy: request.caller.keyId,
        platform: site.platform,
        statusBefore: site.status,
        takesBackup: request.query.last_backup === 'required',
      };
      const acceptance = { ...onSite(site.id), definition: deleteSiteWorkflow, input, action: 'site.delete' };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      await changeStatus(tx, site.id, 'deleting');
      const body = { ...viewSite({ ...site, status: 'deleting' }), workflow_id: workflowId };
      return { status: 202, headers: followHeaders(sitePath(site.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof deleteSiteEndpoint, Tx, undefined>;
