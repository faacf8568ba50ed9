import os from 'node:os';
import path from 'node:path';

export interface Config {
  /** The values of DRYDOCK_URL and DRYDOCK_KEY. They override the current context. */
  url: string | undefined;
  key: string | undefined;
  /** The folder of the contexts, which follows the XDG base directory specification. */
  folder: string;
}

export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = env['XDG_CONFIG_HOME'] ?? '';
  // The XDG specification says that a relative path is ignored.
  const base = path.isAbsolute(given) ? given : path.join(env['HOME'] ?? os.homedir(), '.config');
  const textOf = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  return { url: textOf('DRYDOCK_URL'), key: textOf('DRYDOCK_KEY'), folder: path.join(base, 'drydock') };
}
