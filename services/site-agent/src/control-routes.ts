import { type ChannelRoute, type ControlRoute, changeSchema, controlRoutesOf, done, ok } from '@drydock/agent/control';
import { jobRoutesOf } from '@drydock/agent/jobs';
import {
  appDescriptionSchema,
  ensureSiteSchema,
  freezeSchema,
  hostDatabasesSchema,
  hostStorageSchema,
  probeSchema,
  releaseIdSchema,
  siteDescriptionSchema,
  siteHostProtocol,
  siteStorageSchema,
  switchSchema,
} from '@drydock/agent/site';
import type { HostedSites } from './sites/hosted-sites';

export function controlRoutes(sites: HostedSites): { routes: ControlRoute[]; channel: ChannelRoute } {
  const { route, hostRoute, change } = controlRoutesOf(siteHostProtocol.things, sites);
  const ofJobs = jobRoutesOf(siteHostProtocol.things, sites, sites.jobs);
  const routes = [
    hostRoute('GET /databases', async () => ok({ databases: await sites.offeredDatabases() }), hostDatabasesSchema),
    hostRoute('GET /storage', async () => ok({ sites: sites.readStorage() }), hostStorageSchema),
    route('PUT', async (id, body) => ok(await sites.ensure(id, ensureSiteSchema.parse(body)))),
    route('GET', async (id) => ok(await sites.read(id).describe()), siteDescriptionSchema),
    route('GET /storage', async (id) => ok(sites.read(id).disk.storage), siteStorageSchema),
    route('DELETE', async (id, body) => {
      await sites.destroy(id, changeSchema.parse(body));
      return done;
    }),
    route('DELETE /releases/{releaseId}', async (id, body, sentId) => {
      const releaseId = releaseIdSchema.parse(sentId);
      await sites.change(id, { op: 'remove_release', detail: releaseId }, changeSchema.parse(body), (site) =>
        site.removeRelease(releaseId),
      );
      return done;
    }),
    // The ledger records the duration, because a step that runs again may freeze for longer than before.
    change(
      'POST /freeze',
      { op: 'freeze', detail: ({ ttl_ms }) => `${ttl_ms} ms`, body: freezeSchema },
      (site, { ttl_ms }) => site.freeze(ttl_ms),
    ),
    change('POST /thaw', { op: 'thaw', body: changeSchema }, (site) => site.gate.thaw()),
    change(
      'POST /switch',
      { op: 'switch', detail: ({ expected_release }) => String(expected_release), body: switchSchema },
      async (site, { release_id, expected_release }) => {
        await site.switchTo(release_id, expected_release);
        return site.describe();
      },
    ),
    route('POST /probe', async (id, body) => ok(await sites.read(id).probe(probeSchema.parse(body).path))),
    route('GET /app', async (id) => ok(await sites.read(id).describeApp()), appDescriptionSchema),
    change('POST /app/restart', { op: 'restart_app', body: changeSchema }, (site) => site.restartApp()),
    ...ofJobs.routes,
  ];
  return { routes, channel: ofJobs.channel };
}
