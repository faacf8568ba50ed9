import { type Call, jsonReply, type PathValues, pathValue, type Reply } from '../protocol/call';
import { invalidField, refused } from './hetzner-errors';
import {
  type Action,
  goesUnheard,
  type HetznerWorld,
  type Image,
  imagesOf,
  isLocked,
  locationNamed,
  type ProjectRoute,
  protocolAt,
  requireServer,
  type Server,
  typeNamed,
} from './hetzner-world';
import {
  allowNoBody,
  allowQuery,
  bodySchemas,
  matchesLabels,
  pageOf,
  parseBody,
  showAction,
  showImage,
  showServer,
  sorted,
} from './shapes';

/**
 * Labels with which a user of the sandbox requests failures: the command that fails, and extra seconds for each action.
 */
const failLabel = 'emulator.fail';
const slowLabel = 'emulator.slow-seconds';

/** Returns a command's duration in seconds, with the extra seconds that a label of the server requests. */
const secondsOf = (world: HetznerWorld, command: string, server: Server): number =>
  (world.actionSeconds[command] ?? 1) + Number(server.labels[slowLabel] ?? 0);

/** Accepts a command and saves it. @throws Refusal 423 while the server is locked */
function startAction(
  world: HetznerWorld,
  server: Server,
  command: string,
  { image, disk, detail }: { image?: Image; disk?: Server['disk']; detail?: string } = {},
): Action {
  if (isLocked(world, server)) throw refused('locked', 'cannot perform operation because server is locked');
  const started = world.clock.now();
  const action: Action = {
    id: world.nextId(),
    project: server.project,
    command,
    status: 'running',
    started,
    endsAt: started + secondsOf(world, command, server) * 1_000,
    finished: null,
    serverId: server.id,
    imageId: image?.id ?? null,
    willFail: server.labels[failLabel] === command,
    disk: disk === undefined ? null : { ...disk },
    statusBefore: server.status,
  };
  world.state.actions.push(action);
  if (!goesUnheard(server, command)) server.status = statusDuring[command] ?? server.status;
  world.save({ action, detail: detail ?? (image === undefined ? '' : String(image.id)) });
  return action;
}

const statusDuring: Readonly<Record<string, Server['status']>> = {
  create_server: 'initializing',
  rebuild_server: 'rebuilding',
  delete_server: 'deleting',
  start_server: 'starting',
  reboot_server: 'starting',
  reset_server: 'starting',
  stop_server: 'stopping',
  shutdown_server: 'stopping',
};

const sortFields = ['id', 'command', 'status', 'started', 'finished'];

function listPage(world: HetznerWorld, call: Call, actions: readonly Action[]): Reply {
  const { items, meta } = pageOf(call, sorted(call, actions, sortFields));
  return jsonReply(200, { actions: items.map((action) => showAction(world, action)), meta });
}

/** Lists actions by id. The provider removed listing without ids on 30 January 2025. */
function listActionsById(world: HetznerWorld, project: string, call: Call): Reply {
  allowQuery(call, ['id', 'status', 'sort', 'page', 'per_page']);
  const ids = call.query.getAll('id');
  if (ids.length === 0) throw invalidField('id', 'at least one id is required');
  return listPage(
    world,
    call,
    world.state.actions.filter((action) => action.project === project && ids.includes(String(action.id))),
  );
}

function listServerActions(world: HetznerWorld, project: string, call: Call, values: PathValues): Reply {
  allowQuery(call, ['status', 'sort', 'page', 'per_page']);
  const server = requireServer(world, project, pathValue(values, 'id'));
  const statuses = call.query.getAll('status');
  const ofServer = world.state.actions.filter(
    ({ serverId, status }) => serverId === server.id && (statuses.length === 0 || statuses.includes(status)),
  );
  return listPage(world, call, ofServer);
}

function rebuild(world: HetznerWorld, project: string, call: Call, values: PathValues): Reply {
  const { image: wanted, user_data } = parseBody(bodySchemas.rebuild, call);
  const server = requireServer(world, project, pathValue(values, 'id'));
  const type = typeNamed(server.serverType);
  const image = imagesOf(world, project).find(
    ({ id, name, architecture }) => String(id) === wanted || (name === wanted && architecture === type?.architecture),
  );
  if (image === undefined) throw refused('not_found', `image with ID '${wanted}' not found`);
  if (server.isProtected) throw refused('protected', 'server rebuild is protected');
  if (image.status !== 'available') throw invalidField('image', 'image is not available');
  if (image.architecture !== type?.architecture)
    throw invalidField('image', 'image has another architecture than the server type');
  if (image.diskSize > type.disk) throw invalidField('image', 'image disk is bigger than server type disk');
  server.userData = user_data ?? server.userData;
  return jsonReply(201, {
    action: showAction(world, startAction(world, server, 'rebuild_server', { image, disk: image.disk })),
    root_password: passwordOf(server, user_data),
  });
}

/** Returns the new password of root, or null if the server has SSH keys or user data. */
const passwordOf = ({ hasKeys }: Server, userData?: string): string | null =>
  hasKeys || userData !== undefined ? null : 'emulator';

function createImage(world: HetznerWorld, project: string, call: Call, values: PathValues): Reply {
  const order = parseBody(bodySchemas.createImage, call);
  const server = requireServer(world, project, pathValue(values, 'id'));
  const type = typeNamed(server.serverType);
  const kind = order.type ?? 'snapshot';
  const image: Image = {
    id: world.nextId(),
    project,
    type: kind,
    status: 'creating',
    name: null,
    description: order.description ?? server.name,
    imageSize: null,
    diskSize: type?.disk ?? 0,
    created: world.clock.now(),
    createdFrom: { id: server.id, name: server.name },
    boundTo: kind === 'backup' ? server.id : null,
    architecture: type?.architecture ?? 'x86',
    isDeleteProtected: false,
    labels: order.labels ?? {},
    disk: { ...server.disk },
  };
  if (isLocked(world, server)) throw refused('locked', 'cannot perform operation because server is locked');
  // The image is added first, because the start of the action saves the whole state.
  world.state.images.push(image);
  const action = startAction(world, server, 'create_image', { image });
  return jsonReply(201, { action: showAction(world, action), image: showImage(image) });
}

const power = (path: string, command: string): ProjectRoute =>
  protocolAt('POST', `/servers/:id/actions/${path}`, (world, project, call, values) => {
    allowNoBody(call);
    const server = requireServer(world, project, pathValue(values, 'id'));
    return jsonReply(201, { action: showAction(world, startAction(world, server, command)) });
  });

export const actionRoutes: readonly ProjectRoute[] = [
  protocolAt('GET', '/actions', listActionsById),
  protocolAt('GET', '/actions/:id', (world, project, call, values) => {
    allowQuery(call, []);
    const action = world.state.actions.find(
      ({ id, project: owner }) => owner === project && String(id) === pathValue(values, 'id'),
    );
    if (action === undefined) throw refused('not_found', 'action not found');
    return jsonReply(200, { action: showAction(world, action) });
  }),
  protocolAt('GET', '/servers/:id/actions', listServerActions),
  protocolAt('POST', '/servers/:id/actions/rebuild', rebuild),
  protocolAt('POST', '/servers/:id/actions/create_image', createImage),
  power('poweron', 'start_server'),
  power('poweroff', 'stop_server'),
  power('shutdown', 'shutdown_server'),
  power('reboot', 'reboot_server'),
  power('reset', 'reset_server'),
];

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
    hasKeys: (order.ssh_keys ?? []).length > 0 || order.user_data !== undefined,
    userData: order.user_data ?? '',
    labels: order.labels ?? {},
    created: world.clock.now(),
    // These addresses are reserved for documentation.
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
    root_password: passwordOf(server),
  });
}

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
