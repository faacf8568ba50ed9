import { type Call, jsonReply, type Reply } from '../protocol/call';
import { type PathValues, pathValue } from '../protocol/routes';
import { locationNamed, typeNamed } from './catalogue';
import { invalidField, refused } from './hetzner-errors';
import type { Server } from './hetzner-state';
import { type HetznerWorld, imagesOf, requireServer } from './hetzner-world';
import { matchesLabels, pageOf, sorted } from './paging';
import { type ProjectRoute, protocolAt } from './project-route';
import { allowNoBody, allowQuery, bodySchemas, parseBody } from './request-schemas';
import { showAction, showServer } from './shapes';
import { startAction } from './start-action';

function listServers(world: HetznerWorld, project: string, call: Call): Reply {
  allowQuery(call, ['name', 'label_selector', 'status', 'sort', 'page', 'per_page']);
  const [name, selector, statuses] = [
    call.query.get('name'),
    call.query.get('label_selector'),
    call.query.getAll('status'),
  ];
  const servers = world.state.servers.filter(
    (server) =>
      server.project === project &&
      (name === null || server.name === name) &&
      (selector === null || matchesLabels(selector, server.labels)) &&
      (statuses.length === 0 || statuses.includes(server.status)),
  );
  const { items, meta } = pageOf(call, sorted(call, servers, ['id', 'name', 'created']));
  return jsonReply(200, { servers: items.map((server) => showServer(world, server)), meta });
}

function refuseUsedName({ state }: HetznerWorld, project: string, name: string): void {
  if (state.servers.some((server) => server.project === project && server.name === name))
    throw refused('uniqueness_error', 'server name is already used', { fields: [{ name: 'name' }] });
}

function updateServer(world: HetznerWorld, project: string, call: Call, values: PathValues): Reply {
  const change = parseBody(bodySchemas.updateServer, call);
  const server = requireServer(world, project, pathValue(values, 'id'));
  if (change.name !== undefined && change.name !== server.name) refuseUsedName(world, project, change.name);
  Object.assign(server, change);
  world.save();
  return jsonReply(200, { server: showServer(world, server) });
}

function createServer(world: HetznerWorld, project: string, call: Call): Reply {
  const order = parseBody(bodySchemas.createServer, call);
  const type = typeNamed(order.server_type);
  if (type === undefined) throw invalidField('server_type', 'unknown server type');
  const location = locationNamed(order.location ?? 'fsn1');
  if (location === undefined) throw invalidField('location', 'unknown location');
  const image = imagesOf(world, project).find(
    ({ id, name, architecture }) =>
      String(id) === order.image || (name === order.image && architecture === type.architecture),
  );
  if (image === undefined || image.status !== 'available') throw invalidField('image', 'unknown image');
  if (image.diskSize > type.disk) throw invalidField('image', 'image disk is bigger than server type disk');
  refuseUsedName(world, project, order.name);
  const id = world.nextId();
  const server: Server = {
    id,
    project,
    name: order.name,
    serverType: type.name,
    location: location.name,
    imageId: image.id,
    status: 'initializing',
    isHiddenLocked: false,
    isProtected: false,
    labels: order.labels ?? {},
    created: world.clock.now(),
    // 203.0.113.0/24 and 2001:db8::/32 are reserved for documentation.
    ipv4: order.public_net?.enable_ipv4 === false ? null : `203.0.113.${id % 254}`,
    ipv6: order.public_net?.enable_ipv6 === false ? null : `2001:db8:${(id % 65_535).toString(16)}::/64`,
    disk: {},
  };
  world.state.servers.push(server);
  const action = startAction(world, server, 'create_server', { image, disk: image.disk });
  return jsonReply(201, {
    server: showServer(world, server),
    action: showAction(world, action),
    next_actions: [],
    root_password: 'emulator',
  });
}

/** /servers of the public schema. */
export const serverRoutes: readonly ProjectRoute[] = [
  protocolAt('GET', '/servers', listServers),
  protocolAt('POST', '/servers', createServer),
  protocolAt('GET', '/servers/:id', (world, project, call, values) => {
    allowQuery(call, []);
    return jsonReply(200, { server: showServer(world, requireServer(world, project, pathValue(values, 'id'))) });
  }),
  protocolAt('PUT', '/servers/:id', updateServer),
  protocolAt('DELETE', '/servers/:id', (world, project, call, values) => {
    allowNoBody(call);
    const server = requireServer(world, project, pathValue(values, 'id'));
    if (server.isProtected) throw refused('protected', 'server deletion is protected');
    return jsonReply(200, { action: showAction(world, startAction(world, server, 'delete_server')) });
  }),
];
