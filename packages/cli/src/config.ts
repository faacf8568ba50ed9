import os from 'node:os';
import path from 'node:path';

export interface Config {
  /** DRYDOCK_URL and DRYDOCK_KEY, which go before a context. */
  url: string | undefined;
  key: string | undefined;
  /** Folder of the contexts, by the XDG base directory specification. */
  folder: string;
}

export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = env['XDG_CONFIG_HOME'] ?? '';
  // The specification wants a relative path ignored.
  const base = path.isAbsolute(given) ? given : path.join(env['HOME'] ?? os.homedir(), '.config');
  const textOf = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  return { url: textOf('DRYDOCK_URL'), key: textOf('DRYDOCK_KEY'), folder: path.join(base, 'drydock') };
}
