import { type Call, jsonReply, type Reply } from '../protocol/call';
import { type PathValues, pathValue } from '../protocol/routes';
import { typeNamed } from './catalogue';
import { invalidField, refused } from './hetzner-errors';
import type { Action, Image } from './hetzner-state';
import { type HetznerWorld, imagesOf, isLocked, requireServer } from './hetzner-world';
import { pageOf, sorted } from './paging';
import { type ProjectRoute, protocolAt } from './project-route';
import { allowNoBody, allowQuery, bodySchemas, parseBody } from './request-schemas';
import { showAction, showImage } from './shapes';
import { startAction } from './start-action';

const sortFields = ['id', 'command', 'status', 'started', 'finished'];

function listPage(world: HetznerWorld, call: Call, actions: readonly Action[]): Reply {
  const { items, meta } = pageOf(call, sorted(call, actions, sortFields));
  return jsonReply(200, { actions: items.map((action) => showAction(world, action)), meta });
}

/** Listing without ids was removed on 30 January 2025. */
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
  const { image: wanted } = parseBody(bodySchemas.rebuild, call);
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
  return jsonReply(201, {
    action: showAction(world, startAction(world, server, 'rebuild_server', { image, disk: image.disk })),
    root_password: null,
  });
}

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
  // The image is added before the action starts, because the start saves the whole state.
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

/** /actions and /servers/{id}/actions of the public schema. */
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
