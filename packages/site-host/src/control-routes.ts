import { changeSchema } from '@drydock/host-kit/control-protocol';
import { type ControlRoute, controlRoutesOf, done, ok } from '@drydock/host-kit/control-routes';
import type { HostedSites } from './hosted-sites';
import {
  ensureSiteSchema,
  freezeSchema,
  probeSchema,
  releaseIdSchema,
  siteHostProtocol,
  stageReleaseSchema,
  switchSchema,
} from './protocol';

/** The whole control protocol, one entry for each call. */
export function controlRoutes(sites: HostedSites): ControlRoute[] {
  const { route, change } = controlRoutesOf(siteHostProtocol.things, sites);
  return [
    route('PUT', async (id, body) => ok(await sites.ensure(id, ensureSiteSchema.parse(body)))),
    route('GET', async (id) => ok(await sites.read(id).describe())),
    route('DELETE', async (id, body) => {
      await sites.destroy(id, changeSchema.parse(body));
      return done;
    }),
    change('POST /releases', { op: 'stage_release', body: stageReleaseSchema, status: 201 }, (site, { release_id }) =>
      site.stageRelease(release_id),
    ),
    route('GET /releases/{releaseId}', async (id, _body, sentId) => {
      const releaseId = releaseIdSchema.parse(sentId);
      return ok(await sites.read(id).describeRelease(releaseId));
    }),
    route('DELETE /releases/{releaseId}', async (id, body, sentId) => {
      const releaseId = releaseIdSchema.parse(sentId);
      await sites.change(id, 'remove_release', changeSchema.parse(body), (site) => site.removeRelease(releaseId));
      return done;
    }),
    change('POST /freeze', { op: 'freeze', body: freezeSchema }, (site, { ttl_ms }) => site.freeze(ttl_ms)),
    change('POST /thaw', { op: 'thaw', body: changeSchema }, async (site) => site.thaw()),
    change('POST /switch', { op: 'switch', body: switchSchema }, async (site, { release_id, expected_release }) => {
      await site.switchTo(release_id, expected_release);
      return site.describe();
    }),
    route('POST /probe', async (id, body) => ok(await sites.read(id).probe(probeSchema.parse(body).path))),
    route('GET /app', async (id) => ok(await sites.read(id).describeApp())),
    change('POST /app/restart', { op: 'restart_app', body: changeSchema }, (site) => site.restartApp()),
  ];
}
