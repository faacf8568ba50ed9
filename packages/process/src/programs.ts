import path from 'node:path';
import type { BoxMount } from './box';

/** The root of this repository or of the container image. The path is the same from src/ and from dist/. */
const root = path.resolve(__dirname, '../../..');
const inside = '/drydock';

/**
 * Returns read-only mounts for boxes that run programs of Drydock: packages, services and node_modules. These folders
 * contain no data.
 */
export function programMounts(): BoxMount[] {
  return ['packages', 'services', 'node_modules'].map((name) => ({
    from: path.join(root, name),
    to: path.join(inside, name),
    writable: false,
  }));
}

/** Returns a compiled file's path in a box with {@link programMounts}. */
export function programInBox(file: string): string {
  const relative = path.relative(root, file);
  if (!/^(packages|services)\//.test(relative)) throw new Error(`${file} is no program of a package or a service`);
  return path.join(inside, relative);
}
