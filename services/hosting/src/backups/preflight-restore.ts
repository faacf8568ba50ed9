import type { preflightSiteBackupRestore as endpoint } from '@drydock/contracts/hosting/backups';
import type { ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { describeSite } from '../providers/site-host';
import { readSite } from '../sites/find-site';
import { siteResourceKey } from '../sites/site-names';
import { refuseRestore } from './backup.rules';
import { findBackup } from './backup.store';
import { viewPreflight } from './preflight-restore.view';

/**
 * The preflight of a restore: asks the same rule and changes nothing. A host that does not answer is a finding, not a
 * failure.
 */
export const preflightRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, body, query, requestId } = request;
      const { database, siteHosts, backupStorage } = context;
      const site = await readSite(context, request);
      const backup = await findBackup(database.pool, site, body.backup_id);
      const unfinished = await findUnfinished(database.sql(), siteResourceKey(site.id));
      const refusal = refuseRestore({ site, unfinished }, backup, now);
      const [hosted, isStored] = await Promise.all([
        describeSite(siteHosts, site).catch(() => null),
        backup === null || backup.archive === null
          ? false
          : backupStorage.has(backup.archive.storageKey).catch(() => false),
      ]);
      const archive = backup?.archive ?? null;
      const isMissing = archive !== null && !isStored;
      const facts = {
        site,
        contents: query.contents,
        point: backup,
        rawBytes: archive?.rawBytes ?? null,
        freeBytes: hosted?.freeBytes ?? null,
        isMissing,
        ...(backup !== null && { skipped: backup.skipped, answer: backup.answer }),
      };
      return {
        status: 200,
        body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId), now),
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
