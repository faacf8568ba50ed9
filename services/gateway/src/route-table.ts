import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';

/** An endpoint with everything that can be computed before its first request. */
export interface CompiledRoute {
  endpoint: EndpointDefinition;
  /** The name in logs and traces, such as `GET /v1/sites/{siteId}`. */
  label: string;
  /** Names of the path parameters in their order. */
  parameters: readonly string[];
  /** Literal text before, between and after the parameters. */
  literals: readonly string[];
  isStream: boolean;
}

export interface RouteMatch {
  route: CompiledRoute;
  /** The values of the path parameters, decoded, in the order of `route.parameters`. */
  values: readonly string[];
  /** The query string as it was sent, without the `?`. */
  search: string;
}

export interface RouteTable {
  /**
   * Finds the endpoint of a request; HEAD is matched as GET. Throws 404 `route_not_found`, or 405 `method_not_allowed`
   * with `allow` among its extra members.
   */
  match(method: string, target: string): RouteMatch;
  /** The methods that the path has, in the form of `Allow`. Throws 404 `route_not_found`. */
  methods(target: string): string;
}

interface PathNode {
  literals: Map<string, PathNode>;
  parameter: PathNode | undefined;
  routes: Map<string, CompiledRoute>;
}

const emptyNode = (): PathNode => ({ literals: new Map(), parameter: undefined, routes: new Map() });
const isParameter = (segment: string): boolean => segment.startsWith('{');

/**
 * Every endpoint's path in a tree of segments. A literal segment wins over a parameter: `/v1/sites/deleted` is not the
 * site named deleted.
 */
export function createRouteTable(endpoints: readonly EndpointDefinition[]): RouteTable {
  const root = emptyNode();
  for (const endpoint of endpoints) {
    const node = endpoint.path.slice(1).split('/').reduce(growBranch, root);
    if (node.routes.has(endpoint.method)) throw new Error(`${endpoint.method} ${endpoint.path} is there twice`);
    node.routes.set(endpoint.method, compileRoute(endpoint));
  }
  return {
    match: (method, target) => matchRoute(root, method, target),
    methods: (target) => methodsOf(findNode(root, target).node),
  };
}

function growBranch(node: PathNode, segment: string): PathNode {
  if (isParameter(segment)) {
    node.parameter ??= emptyNode();
    return node.parameter;
  }
  const next = node.literals.get(segment) ?? emptyNode();
  node.literals.set(segment, next);
  return next;
}

function compileRoute(endpoint: EndpointDefinition): CompiledRoute {
  const { method, path, response } = endpoint;
  return {
    endpoint,
    label: `${method} ${path}`,
    parameters: [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name),
    literals: path.split(/\{[^}]+\}/),
    isStream: response.contentType === 'text/event-stream',
  };
}

function matchRoute(root: PathNode, method: string, target: string): RouteMatch {
  const { node, values, search } = findNode(root, target);
  const route = node.routes.get(method === 'HEAD' ? 'GET' : method);
  // HEAD on a stream would be useless, so it is not matched.
  if (route === undefined || (method === 'HEAD' && route.isStream))
    throw problem('method_not_allowed', { extra: { allow: methodsOf(node) } });
  return { route, values, search };
}

function methodsOf({ routes }: PathNode): string {
  const read = routes.get('GET');
  return [...routes.keys(), 'OPTIONS', ...(read === undefined || read.isStream ? [] : ['HEAD'])].sort().join(', ');
}

function findNode(root: PathNode, target: string): { node: PathNode; values: string[]; search: string } {
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const search = queryAt < 0 ? '' : target.slice(queryAt + 1);
  // A client has no reason to send a fragment, but Node accepts one. A program behind the gateway might end the path or
  // the query at it.
  if (!path.startsWith('/') || target.includes('#')) throw problem('route_not_found');
  const values: string[] = [];
  let node: PathNode | undefined = root;
  for (const segment of path.slice(1).split('/')) {
    node = node.literals.get(segment) ?? takeParameter(node, segment, values);
    if (node === undefined) throw problem('route_not_found');
  }
  if (node.routes.size === 0) throw problem('route_not_found');
  return { node, values, search };
}

function takeParameter(node: PathNode, segment: string, values: string[]): PathNode | undefined {
  if (node.parameter === undefined) return undefined;
  const value = decodeSegment(segment);
  if (value === undefined) return undefined;
  values.push(value);
  return node.parameter;
}

/**
 * Characters that could turn the path into another one when it is decoded: separators, segments of dots, controls, and
 * `%`, because some programs decode twice.
 */
const treacherous = /[/\\%;\p{Cc}]|^\.{1,2}$/u;
/** The most characters of an id that is forwarded as it is. No id of Drydock or of a provider is as long. */
const idLengthMax = 256;
/** Replaces a malformed id, so that the service answers its ordinary 404. */
export const noId = '~';

/** Undefined for an empty segment, so that a path with a slash at its end matches no endpoint. */
function decodeSegment(segment: string): string | undefined {
  if (segment === '') return undefined;
  let value = segment;
  if (segment.includes('%')) {
    try {
      value = decodeURIComponent(segment);
    } catch {
      return noId;
    }
  }
  return value.length > idLengthMax || treacherous.test(value) ? noId : value;
}

/**
 * The path for the service. Each value is encoded again, so that the path has the template's segments whatever the
 * client sent.
 */
export function upstreamPath({ literals }: CompiledRoute, values: readonly string[]): string {
  let path = literals[0] ?? '';
  for (let index = 0; index < values.length; index += 1)
    path += encodeURIComponent(values[index] ?? '') + (literals[index + 1] ?? '');
  return path;
}
