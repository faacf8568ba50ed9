import { type Call, jsonReply, type Reply } from '../protocol/call';
import { pathValue } from '../protocol/routes';
import { locations, serverTypes } from './catalogue';
import { refused } from './hetzner-errors';
import { type ProjectRoute, protocolAt } from './hetzner-world';
import { pageOf, sorted } from './paging';
import { allowQuery } from './request-schemas';
import { showServerType } from './shapes';

type Entry = Readonly<Record<string, unknown>> & { id: number; name: string };

/**
 * Lists entries by name and page, and answers each single entry. `kind` is the singular, as the public schema writes
 * it.
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

/**
 * The lists that clients look up by name before they order. No project has SSH keys, networks or placement groups here.
 */
export const catalogueRoutes: readonly ProjectRoute[] = [
  ...readOnly('server_type', serverTypes, showServerType),
  ...readOnly('location', locations, (location) => location),
  ...readOnly('ssh_key', [], (key) => key),
];
