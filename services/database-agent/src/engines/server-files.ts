import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { serverAccount } from '@drydock/process/unprivileged';

/**
 * Writes the files that a server reads besides its data, such as its certificate, where its account can read them, anew
 * for every start. Resolves with the path of each, by the name of its setting.
 */
export function writeServerFiles<Setting extends string>(
  home: string,
  account: number,
  files: Readonly<Record<Setting, readonly [name: string, text: string]>>,
): Record<Setting, string> {
  const folder = path.join(home, 'tls');
  const { uid } = serverAccount(account);
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const write = ([setting, [name, text]]: [string, readonly [string, string]]): [string, string] => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (uid !== undefined) chownSync(file, uid, uid);
    return [setting, file];
  };
  return Object.fromEntries(Object.entries<readonly [string, string]>(files).map(write)) as Record<Setting, string>;
}
