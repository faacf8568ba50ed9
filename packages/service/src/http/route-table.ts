import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';

const parameter = /\{([^}]+)\}/g;

/** The path in Express' form: `/v1/sites/{siteId}` becomes `/v1/sites/:siteId`. */
export const patternOf = (path: string): string => path.replaceAll(parameter, ':$1');

/**
 * The endpoints of `promised` that belong to the service and have no handler yet. Throws if an endpoint is mounted
 * twice or belongs to another service. Unless `mayBeMissing`, throws if any is missing, because only a developer may
 * start an incomplete service.
 */
export function findUnmounted<E extends Pick<EndpointDefinition, 'id' | 'service'>>(
  service: string,
  mounted: readonly Pick<EndpointDefinition, 'id'>[],
  promised: readonly E[],
  mayBeMissing: boolean,
): E[] {
  const left = promised.filter((endpoint) => endpoint.service === service);
  for (const { id } of mounted) {
    const at = left.findIndex((endpoint) => endpoint.id === id);
    if (at < 0) throw new Error(`${service} mounts ${id}, which is not its own or is mounted already`);
    left.splice(at, 1);
  }
  if (left.length > 0 && !mayBeMissing)
    throw new Error(`${service} does not mount ${left.map(({ id }) => id).join(', ')}`);
  return left;
}

/** The path with its parameters filled in. */
export const pathWith = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replaceAll(parameter, (_placeholder, name: string) => encodeURIComponent(params[name] ?? ''));

/** The names of the path's parameters, in order. */
export const parametersOf = (path: string): string[] => [...path.matchAll(parameter)].flatMap(([, name]) => name ?? []);

/**
 * Puts literal segments before parameters, so that `/v1/sites/deleted` is not taken for a site named deleted. `~` sorts
 * after every letter.
 */
export function sortRoutes<R extends { endpoint: Pick<EndpointDefinition, 'path'> }>(routes: readonly R[]): R[] {
  const order = ({ endpoint }: R): string => endpoint.path.replaceAll(parameter, '~');
  return [...routes].sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

/** The methods that a concrete path has, for `Allow`; empty if there is no such path. */
export function methodsOf(endpoints: readonly EndpointDefinition[], path: string): string[] {
  const matching = endpoints.filter((endpoint) => isAt(endpoint.path, path));
  return [...new Set(matching.map(({ method }) => method))].sort();
}

/** Whether the concrete path matches the template. */
export function isAt(template: string, path: string): boolean {
  const [segments, given] = [template.split('/'), path.split('/')];
  return segments.length === given.length && segments.every((segment, index) => fits(segment, given[index]));
}

/** Whether a segment matches. As in Express, a parameter matches any text but an empty one. */
const fits = (segment: string, given: string | undefined): boolean =>
  segment.startsWith('{') ? given !== '' : segment === given;
