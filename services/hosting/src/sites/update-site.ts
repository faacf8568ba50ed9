import type { updateSite as endpoint } from '@drydock/contracts/hosting/sites';
import { audit } from '@drydock/service/effects';
import { changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { holdSite, viewSite } from './find-site';
import { describeSite } from './site.store';
import { sitePath } from './site.types';

/** Changes the name and metadata. The row is locked, so that of two changes at once neither is lost. */
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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;
