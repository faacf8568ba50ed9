import { z } from 'zod';
import type { HostedSites } from './hosted-sites';
import {
  changeSchema,
  ensureSiteSchema,
  freezeSchema,
  probeSchema,
  releaseIdSchema,
  siteIdSchema,
  stageReleaseSchema,
  switchSchema,
} from './protocol';

export interface ControlAnswer {
  status: number;
  body?: unknown;
}

interface ControlRoute {
  method: string;
  pattern: RegExp;
  /** `ids` are the pattern's groups, `body` is what was sent. Throws a ZodError for what is not the protocol, and {@link SiteHostError}. */
  handle: (ids: string[], body: unknown) => Promise<ControlAnswer>;
}

const site = '^/control/sites/([^/]+)';
const oneId = z.tuple([siteIdSchema]);
const twoIds = z.tuple([siteIdSchema, releaseIdSchema]);
const done: ControlAnswer = { status: 204 };

/** The whole control protocol, one entry for each call. */
export const controlRoutes = (sites: HostedSites): ControlRoute[] => [
  {
    method: 'PUT',
    pattern: new RegExp(`${site}$`),
    handle: async (ids, body) => ({ status: 200, body: await sites.ensure(oneId.parse(ids)[0], ensureSiteSchema.parse(body)) }),
  },
  {
    method: 'GET',
    pattern: new RegExp(`${site}$`),
    handle: async (ids) => ({ status: 200, body: await sites.read(oneId.parse(ids)[0]).describe() }),
  },
  {
    method: 'DELETE',
    pattern: new RegExp(`${site}$`),
    handle: async (ids, body) => {
      await sites.destroy(oneId.parse(ids)[0], changeSchema.parse(body));
      return done;
    },
  },
  {
    method: 'POST',
    pattern: new RegExp(`${site}/releases$`),
    handle: async (ids, body) => {
      const wanted = stageReleaseSchema.parse(body);
      const release = await sites.change(oneId.parse(ids)[0], 'stage_release', wanted, (found) => found.stageRelease(wanted.release_id));
      return { status: 201, body: release };
    },
  },
  {
    method: 'GET',
    pattern: new RegExp(`${site}/releases/([^/]+)$`),
    handle: async (ids) => {
      const [siteId, releaseId] = twoIds.parse(ids);
      return { status: 200, body: await sites.read(siteId).describeRelease(releaseId) };
    },
  },
  {
    method: 'DELETE',
    pattern: new RegExp(`${site}/releases/([^/]+)$`),
    handle: async (ids, body) => {
      const [siteId, releaseId] = twoIds.parse(ids);
      await sites.change(siteId, 'remove_release', changeSchema.parse(body), (found) => found.removeRelease(releaseId));
      return done;
    },
  },
  {
    method: 'POST',
    pattern: new RegExp(`${site}/freeze$`),
    handle: async (ids, body) => {
      const wanted = freezeSchema.parse(body);
      return { status: 200, body: await sites.change(oneId.parse(ids)[0], 'freeze', wanted, (found) => found.freeze(wanted.ttl_ms)) };
    },
  },
  {
    method: 'POST',
    pattern: new RegExp(`${site}/thaw$`),
    handle: async (ids, body) => {
      await sites.change(oneId.parse(ids)[0], 'thaw', changeSchema.parse(body), async (found) => found.thaw());
      return done;
    },
  },
  {
    method: 'POST',
    pattern: new RegExp(`${site}/switch$`),
    handle: async (ids, body) => {
      const wanted = switchSchema.parse(body);
      const description = await sites.change(oneId.parse(ids)[0], 'switch', wanted, async (found) => {
        await found.switchTo(wanted.release_id, wanted.expected_release);
        return found.describe();
      });
      return { status: 200, body: description };
    },
  },
  {
    method: 'POST',
    pattern: new RegExp(`${site}/probe$`),
    handle: async (ids, body) => ({ status: 200, body: await sites.read(oneId.parse(ids)[0]).probe(probeSchema.parse(body).path) }),
  },
  {
    method: 'GET',
    pattern: new RegExp(`${site}/app$`),
    handle: async (ids) => ({ status: 200, body: await sites.read(oneId.parse(ids)[0]).describeApp() }),
  },
  {
    method: 'POST',
    pattern: new RegExp(`${site}/app/restart$`),
    handle: async (ids, body) => ({
      status: 200,
      body: await sites.change(oneId.parse(ids)[0], 'restart_app', changeSchema.parse(body), (found) => found.restartApp()),
    }),
  },
];
