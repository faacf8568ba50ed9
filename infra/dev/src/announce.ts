import path from 'node:path';
import type { Demo } from './demo/demo-file';

/** What is where, with one command that works as it stands. */
export function announce(demo: Demo, dataDir: string, notes: readonly string[]): string {
  const shown = path.relative(process.cwd(), dataDir) || '.';
  const lines = [
    '',
    `Drydock is up at ${demo.base_url}`,
    '',
    ...demo.sites.map((site) => `  Demo site   ${site.url}`),
    `  API         ${demo.base_url}/docs`,
    `  Keys, ids   ${path.join(shown, 'demo.json')}`,
    `  Processes   ${path.join(shown, 'processes.json')}`,
    `  Logs        ${path.join(shown, 'logs')}`,
    ...notes.map((note) => `  ${note}`),
    '',
    'Try:',
    `  curl -s ${demo.base_url}/v1/sites -H 'Authorization: Bearer ${demo.live_key}'`,
    '',
    'Ctrl-C stops everything.',
    '',
  ];
  return lines.join('\n');
}
