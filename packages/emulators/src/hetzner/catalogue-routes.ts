import { type Call, emptyReply, jsonReply, type PathValues, pathValue, type Reply } from '../protocol/call';
import { refused } from './hetzner-errors';
import {
  type HetznerWorld,
  imagesOf,
  locations,
  type ProjectRoute,
  protocolAt,
  requireImage,
  serverTypes,
} from './hetzner-world';
import {
  allowNoBody,
  allowQuery,
  bodySchemas,
  matchesLabels,
  pageOf,
  parseBody,
  showImage,
  showServerType,
  sorted,
} from './shapes';

type Entry = Readonly<Record<string, unknown>> & { id: number; name: string };

/**
 * Returns routes that list entries by name and page, and that answer a single entry. `kind` is the singular of the
 * entries' name in the public schema.
 */
function readOnly<T extends Entry>(kind: string, entries: readonly T[], show: (entry: T) => object): ProjectRoute[] {
  const list = (call: Call): Reply => {
    allowQuery(call, ['name', 'sort', 'page', 'per_page']);
    const name = call.query.get('name');
    const wanted = entries.filter((entry) => name === null || entry.name === name);
    const { items, meta } = pageOf(call, sorted(call, wanted, ['id', 'name']));
    return jsonReply(200, { [`${kind}s`]: items.map(show), meta });
  };
  return [
    protocolAt('GET', `/${kind}s`, (_world, _project, call) => list(call)),
    protocolAt('GET', `/${kind}s/:id`, (_world, _project, call, values) => {
      allowQuery(call, []);
      const entry = entries.find(({ id }) => String(id) === pathValue(values, 'id'));
      if (entry === undefined) throw refused('not_found', `${kind.replace('_', ' ')} not found`);
      return jsonReply(200, { [kind]: show(entry) });
    }),
  ];
}

/** The lists in which clients look up names before they create a server. The list of SSH keys is always empty. */
export const catalogueRoutes: readonly ProjectRoute[] = [
  ...readOnly('server_type', serverTypes, showServerType),
  ...readOnly('location', locations, (location) => location),
  ...readOnly('ssh_key', [], (key) => key),
];

const filters = [
  'type',
  'status',
  'label_selector',
  'bound_to',
  'architecture',
  'name',
  'include_deprecated',
  'sort',
  'page',
  'per_page',
];

function listImages(world: HetznerWorld, project: string, call: Call): Reply {
  allowQuery(call, filters);
  const { query } = call;
  const isWanted = (name: string, value: string): boolean =>
    query.getAll(name).length === 0 || query.getAll(name).includes(value);
  const selector = query.get('label_selector');
  const images = imagesOf(world, project).filter(
    (image) =>
      isWanted('type', image.type) &&
      isWanted('status', image.status) &&
      isWanted('architecture', image.architecture) &&
      isWanted('name', image.name ?? '') &&
      isWanted('bound_to', String(image.boundTo)) &&
      (selector === null || matchesLabels(selector, image.labels)),
  );
  const { items, meta } = pageOf(call, sorted(call, images, ['id', 'name', 'created']));
  return jsonReply(200, { images: items.map(showImage), meta });
}

function deleteImage(world: HetznerWorld, project: string, call: Call, values: PathValues): Reply {
  allowNoBody(call);
  const image = requireImage(world, project, pathValue(values, 'id'));
  if (image.project === null) throw refused('invalid_input', 'only snapshots and backups can be deleted');
  if (image.isDeleteProtected) throw refused('protected', 'image deletion is protected');
  world.state.images = world.state.images.filter(({ id }) => id !== image.id);
  world.save();
  return emptyReply(204);
}

export const imageRoutes: readonly ProjectRoute[] = [
  protocolAt('GET', '/images', listImages),
  protocolAt('GET', '/images/:id', (world, project, call, values) => {
    allowQuery(call, []);
    return jsonReply(200, { image: showImage(requireImage(world, project, pathValue(values, 'id'))) });
  }),
  protocolAt('PUT', '/images/:id', (world, project, call, values) => {
    const change = parseBody(bodySchemas.updateImage, call);
    const image = requireImage(world, project, pathValue(values, 'id'));
    if (image.project === null) throw refused('invalid_input', 'only snapshots and backups can be changed');
    Object.assign(image, change, change.type === 'snapshot' ? { boundTo: null } : {});
    world.save();
    return jsonReply(200, { image: showImage(image) });
  }),
  protocolAt('DELETE', '/images/:id', deleteImage),
];
