import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { textOfScript } from './remote-scripts';

const root = mkdtempSync(path.join(tmpdir(), 'drydock-scripts-'));
const ordinaryUser = 65_534;
afterAll(() => {
  // After the test the owner of a top folder may read it but not write to it, and so cannot remove its content.
  spawnSync('chmod', ['-R', 'u+rwx', root]);
  rmSync(root, { recursive: true, force: true });
});

/**
 * Runs `command` as an ordinary account that owns everything below `root`, because modes restrict no command of root.
 */
function asOwner(...command: string[]) {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) spawnSync('chown', ['-R', `${ordinaryUser}:${ordinaryUser}`, root]);
  const as = ['setpriv', '--reuid', String(ordinaryUser), '--regid', String(ordinaryUser), '--clear-groups'];
  const [program = '', ...args] = isRoot ? [...as, ...command] : command;
  return spawnSync(program, args, { cwd: root, input: 'the password\n', encoding: 'utf8' });
}

it.each(['644', '311', '0'])('a site whose top folder has mode %s for its own account is packed', (mode) => {
  const files = path.join(root, 'live', `site-${mode}`, 'releases', 'first', 'files');
  mkdirSync(path.join(files, 'a'), { recursive: true });
  writeFileSync(path.join(files, 'a', 'index.html'), 'still here');
  chmodSync(files, Number.parseInt(mode, 8));
  const site = [root, 'live', `site-${mode}`, '0', '127.0.0.1', '5432', 'admin', 'role', 'first'];
  const script = 'sh -c "$0" drydock "$@" | tar --extract --to-stdout --file=- ./a/index.html';
  const read = asOwner('sh', '-c', script, textOfScript('postgres', 'readFiles'), ...site);
  expect([read.stderr, read.stdout]).toEqual(['', 'still here']);
});
