// Runs the blocks of the README and the guides, and the examples of the client's README, while `npm start` runs. Blocks
// marked `needs:` or `beside:` are left out. Prints each place at which a reader would fail. `.ci/first-restore` runs
// this program.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { repoRoot } from '../dev-config';
import { complaintsOf, listBlocks, runBlock, runClientExamples } from './readme-blocks';

async function pastePages(): Promise<number> {
  const startedAt = Date.now();
  const pages = /^(?:README\.md|docs\/guides\/.+)$/;
  const blocks = listBlocks().filter(
    ({ page, needs, beside }) => pages.test(page) && needs === undefined && beside === undefined,
  );
  // A block may write into the home folder, for example a link to `drydock`.
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-reader-'));
  const reader = { ...process.env, HOME: home, PATH: `${home}/.local/bin:${process.env['PATH']}` };
  const complaints: string[] = [];
  for (const block of blocks) complaints.push(...complaintsOf(block, await runBlock(block, repoRoot, reader)));
  const demo = JSON.parse(fs.readFileSync(path.join(repoRoot, '.data/demo.json'), 'utf8')) as {
    base_url: string;
    live_key: string;
  };
  await runClientExamples(demo).catch((error: unknown) =>
    complaints.push(`packages/client/README.md ${String(error)}`),
  );
  fs.rmSync(home, { recursive: true, force: true });
  for (const complaint of complaints) process.stderr.write(`${complaint}\n`);
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  process.stdout.write(
    `${blocks.length} blocks of README and guides pasted in ${seconds} s, ${complaints.length} complaints\n`,
  );
  return complaints.length > 0 || blocks.length === 0 ? 1 : 0;
}

void pastePages().then((code) => {
  process.exitCode = code;
});
