import {
  type getSite as getSiteEndpoint,
  listSites as listSitesEndpoint,
  type SiteView,
  type updateSite as updateSiteEndpoint,
} from '@drydock/contracts/hosting/sites';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { audit } from '@drydock/service/effects';
import {
  changeMetadata,
  type ExecuteHandlers,
  listFilter,
  type Page,
  type PageRequest,
  type ReadHandlers,
} from '@drydock/service/http';
import type { WorkflowParent } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeSite, findSite, listSites as listRows, lockSite } from './site.store';
import { ownerOf, type Site, sitePath, siteSubject } from './site.types';

/** The refusal while the host of a site does not answer. */
export const hostUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'site-host' },
    retryAfterSeconds: 5,
    ...(cause === undefined ? {} : { cause }),
  });

interface AboutSite {
  caller: Caller;
  params: { siteId: string };
}

/** Reads a site of the caller. A missing site and a site of another organisation give the same 404. */
export async function readSite(context: HandlerContext, { caller, params }: AboutSite): Promise<Site> {
  return present(await findSite(context.database.pool, ownerOf(caller), params.siteId));
}

/** Works like {@link readSite}, and locks the row until the transaction ends. */
export async function holdSite(tx: Tx, { caller, params }: AboutSite): Promise<Site> {
  return present(await lockSite(tx, ownerOf(caller), params.siteId));
}

function present(site: Site | null): Site {
  if (site === null) throw problem('site_not_found');
  return site;
}

export const siteParent = (context: HandlerContext): WorkflowParent<Tx, 'siteId'> => ({
  context,
  param: 'siteId',
  subjectOf: siteSubject,
  assertThere: (caller, siteId) => readSite(context, { caller, params: { siteId } }),
});

export function viewSite(site: Site): SiteView {
  return {
    id: site.id,
    org_id: site.orgId,
    name: site.name,
    primary_domain: site.primaryDomain,
    platform: site.platform,
    database: site.database,
    status: site.status,
    url: site.url,
    plan: { daily_backups: site.dailyBackups, backup_retention_days: site.backupRetentionDays },
    metadata: site.metadata,
    created_at: site.createdAt.toISOString(),
  };
}

interface ListRequest {
  caller: Caller;
  params: { siteId: string };
  now: Date;
  /** Without a query the list begins with its first page. */
  query?: { limit?: string | undefined; cursor?: string | undefined } | undefined;
}

export interface ListPage {
  asked: PageRequest;
  now: Date;
  /** Makes the page from up to `asked.limit + 1` rows that come after `asked.after`. */
  pageOf<Row extends { id: string }, Item>(rows: readonly Row[], view: (row: Row) => Item): Page<Item>;
}

/** Reads which page of the list with the id `list` is requested. Throws 422 `invalid_limit` or `invalid_cursor`. */
export function readListPage({ pager }: Pick<HandlerContext, 'pager'>, list: string, request: ListRequest): ListPage {
  const { caller, params, now, query = {} } = request;
  const binding = { list, keyId: caller.keyId, filter: listFilter(caller, query, params.siteId) };
  const asked = pager.read(query, binding, now);
  return {
    asked,
    now,
    pageOf: (rows, view) => pager.pageOf(rows, asked, binding, now, { positionOf: ({ id }) => id, view }),
  };
}

export const getSite = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: viewSite(await readSite(context, request)) }),
  }) satisfies ReadHandlers<typeof getSiteEndpoint>;

export const listSites = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database } = context;
      const binding = { list: listSitesEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const body = pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewSite });
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof listSitesEndpoint>;

export const updateSite = ({ database }: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller } = request;
      const held = await holdSite(tx, request);
      const { id, name, metadata } = held;
      await request.assertMatch(() => viewSite(held));
      const site = await describeSite(tx, id, {
        name: body.name ?? name,
        metadata: changeMetadata(metadata, body.metadata),
      });
      const { orgId, mode, keyId: actorKeyId } = caller;
      await audit(database.sql(tx), {
        orgId,
        mode,
        actorKeyId,
        action: 'site.update',
        target: sitePath(id),
        workflowId: null,
      });
      return { status: 200, body: viewSite(site) };
    },
  }) satisfies ExecuteHandlers<typeof updateSiteEndpoint, Tx, undefined>;
