import type { getSiteOffsite as endpoint, getSiteOffsiteCopy } from '@drydock/contracts/hosting/offsite';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { readSite } from '../sites/find-site';
import { readListPage } from '../sites/site-list';
import { findNamed } from './offsite.rules';
import { viewCopy } from './offsite.view';
import { copyList, readOffsiteState, readOffsiteWorld } from './offsite-state';

export const getOffsite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const page = readListPage(context, copyList, request);
      const site = await readSite(context, request);
      return { status: 200, body: await readOffsiteState(context, context.database.pool, site, page) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

/** Shows one entry of the list, by the same rules: a copy that is still being taken answers 404. */
export const getOffsiteCopy = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      const { copies } = await readOffsiteWorld(context, context.database.pool, site);
      const copy = findNamed(copies, request.params.copyId);
      if (copy === null || copy.status === 'running') throw problem('site_offsite_copy_not_found');
      return { status: 200, body: viewCopy(copies, copy) };
    },
  }) satisfies ReadHandlers<typeof getSiteOffsiteCopy>;
