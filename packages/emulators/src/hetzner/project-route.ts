import type { Call, Reply } from '../protocol/call';
import type { PathValues } from '../protocol/routes';
import type { HetznerWorld } from './hetzner-world';

/** A call by the project to which its token belongs. */
export type ProjectHandler = (world: HetznerWorld, project: string, call: Call, values: PathValues) => Reply;

export interface ProjectRoute {
  method: string;
  pattern: string;
  handle: ProjectHandler;
}

export const protocolAt = (method: string, path: string, handle: ProjectHandler): ProjectRoute => ({
  method,
  pattern: `/v1${path}`,
  handle,
});
