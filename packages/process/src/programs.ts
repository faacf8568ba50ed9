import path from 'node:path';
import type { BoxMount } from './box';

/**
 * The root folder of this repository, or of the folder that the image was made from. It is the same from src/ and from
 * dist/.
 */
const root = path.resolve(__dirname, '../../..');
const inside = '/drydock';

/**
 * Mounts for boxes that run our own programs: the compiled packages and services and what they need, read-only. Never a
 * folder of data.
 */
export function programMounts(): BoxMount[] {
  return ['packages', 'services', 'node_modules'].map((name) => ({
    from: path.join(root, name),
    to: path.join(inside, name),
    writable: false,
  }));
}

/** The path of one of our compiled files in a box with {@link programMounts}. */
export function programInBox(file: string): string {
  const relative = path.relative(root, file);
  if (!/^(packages|services)\//.test(relative)) throw new Error(`${file} is no program of a package or a service`);
  return path.join(inside, relative);
}
