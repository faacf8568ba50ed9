import { z } from 'zod';
import { parseAdmin } from '../protocol/admin-routes';
import { emptyReply, jsonReply, Refusal } from '../protocol/call';
import { pathValue, type Route, routeAt } from '../protocol/routes';
import { serverStatuses } from './hetzner-state';
import type { HetznerWorld } from './hetzner-world';
import type { RateLimit } from './rate-limit';

const serverChange = z
  .strictObject({
    status: z.enum(serverStatuses),
    isHiddenLocked: z.boolean(),
    isProtected: z.boolean(),
    labels: z.record(z.string(), z.string()),
    ipv4: z.string().nullable(),
    ipv6: z.string().nullable(),
  })
  .partial();

const imageChange = z
  .strictObject({
    status: z.enum(['creating', 'available', 'unavailable']),
    architecture: z.enum(['x86', 'arm']),
    diskSize: z.number().positive(),
    isDeleteProtected: z.boolean(),
    created: z.number(),
    description: z.string(),
  })
  .partial();

const limitChange = z.strictObject({ perHour: z.int().min(1) });
const missing = (): Refusal => new Refusal(jsonReply(404, { error: 'no such object' }));

/**
 * Routes for events that Drydock does not cause: lost power, locks that no listing shows, images that never get ready,
 * machines that vanish.
 */
export const hetznerAdminRoutes = (world: HetznerWorld, limit: RateLimit): Route[] => [
  routeAt('PATCH', '/emulator/servers/:id', (call, values) => {
    const server = world.state.servers.find(({ id }) => String(id) === pathValue(values, 'id'));
    if (server === undefined) throw missing();
    Object.assign(server, parseAdmin(serverChange, call));
    world.save();
    return emptyReply(204);
  }),
  routeAt('DELETE', '/emulator/servers/:id', (_call, values) => {
    world.state.servers = world.state.servers.filter(({ id }) => String(id) !== pathValue(values, 'id'));
    world.save();
    return emptyReply(204);
  }),
  routeAt('PATCH', '/emulator/images/:id', (call, values) => {
    const image = world.state.images.find(({ id }) => String(id) === pathValue(values, 'id'));
    if (image === undefined) throw missing();
    Object.assign(image, parseAdmin(imageChange, call));
    world.save();
    return emptyReply(204);
  }),
  routeAt('PUT', '/emulator/rate-limit', (call) => {
    limit.setPerHour(parseAdmin(limitChange, call).perHour);
    return emptyReply(204);
  }),
  routeAt('GET', '/emulator/rate-limit/:project', (_call, values) =>
    jsonReply(200, { peakPerHour: limit.peakPerHour(pathValue(values, 'project')) }),
  ),
];
