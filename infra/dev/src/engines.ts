// `npm run engines -- mariadb@10.11 …`: fetches the programs of MariaDB and MySQL from Debian's packages. Without a
// name, it lists the engines on this machine.

import { engineFolders, fetchableEngines, fetchEngine, listEngines } from '@drydock/mysql';
import { readCommandLine } from '@drydock/process';

const usage = `npm run engines -- NAME…   (${fetchableEngines.join(' ')}; without a name: what is there)`;

async function main(names: readonly string[]): Promise<void> {
  const [folder = ''] = engineFolders();
  for (const name of names) {
    const started = performance.now();
    const { engine, isNew } = await fetchEngine(name, folder);
    const how = isNew ? `fetched in ${((performance.now() - started) / 1000).toFixed(1)} s` : 'was there';
    process.stdout.write(`${engine.label} (${engine.release}) ${how}: ${engine.root}\n`);
  }
  if (names.length > 0) return;
  const engines = await listEngines();
  for (const { label, release, root } of engines)
    process.stdout.write(`${label} (${release}): ${root === '/' ? 'installed' : root}\n`);
  if (engines.length === 0) process.stdout.write(`None is there. Fetch one: ${usage}\n`);
}

const { positionals } = readCommandLine(usage, { options: {}, wordsMax: fetchableEngines.length });
void main(positionals).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
