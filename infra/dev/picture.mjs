// Writes docs/restore.svg, an animated picture of a terminal during a real restore. Run it while `npm start` runs:
//   node infra/dev/picture.mjs
// The command `drydock` runs in a pseudo-terminal (`script`). Its output is recorded with the time of each change, and
// long pauses are shortened.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expectNoArguments } from './no-arguments.mjs';

expectNoArguments(
  'usage: node infra/dev/picture.mjs\n  Restores a site of the demo that runs beside it, and draws docs/restore.svg of that.',
);

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const demo = JSON.parse(fs.readFileSync(path.join(root, '.data/demo.json'), 'utf8'));
const program = path.join(root, 'packages/cli/dist/drydock.js');
const env = { ...process.env, DRYDOCK_URL: demo.base_url, DRYDOCK_KEY: demo.live_key };
const ask = (...words) =>
  JSON.parse(execFileSync(process.execPath, [program, ...words, '-o', 'json'], { env, encoding: 'utf8' }));

const escapeByte = '\u001b';
/** Matches an end of line, an escape sequence or a piece of text. */
const pieces = new RegExp(`\\r\\n|\\r|\\n|${escapeByte}\\[[\\d;?]*[A-Za-z]|[^\\r\\n${escapeByte}]+`, 'g');
const pauseMaxMs = 1200;
const columns = 110;
const size = { row: 21, letter: 8.43, top: 58, left: 22 };

const site = ask('sites', 'get', demo.sites[0].id);
const backup = ask('backups', 'list', site.id).backups.find(
  ({ status, kind }) => status === 'completed' && kind !== 'pre_restore',
);
const words = ['sites', 'restore', site.id, '--backup', backup.id];

/** Runs the command in a pseudo-terminal and types the name that it asks for. Resolves with the screens it showed. */
function record() {
  const screens = [{ atMs: 0, lines: [''] }];
  const started = performance.now();
  let lines = [''];
  let column = 0;
  let isAnswered = false;
  const quiet = `stty cols ${columns} rows 40; exec '${process.execPath}' '${program}' ${words.join(' ')}`;
  const child = spawn('script', ['-qec', quiet, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdout.setEncoding('utf8').on('data', (text) => {
    for (const piece of text.match(pieces) ?? []) {
      const line = lines.at(-1);
      if (piece.endsWith('\n')) lines = [...lines, ''];
      if (/[\r\n]$/.test(piece)) column = 0;
      else if (!piece.startsWith(escapeByte)) {
        lines = [
          ...lines.slice(0, -1),
          line.padEnd(column).slice(0, column) + piece + line.slice(column + piece.length),
        ];
        column += piece.length;
      } else if (piece.endsWith('G')) column = Number.parseInt(piece.slice(2), 10) - 1;
      else if (/[JK]$/.test(piece)) lines = [...lines.slice(0, -1), line.slice(0, column)];
    }
    const shown = lines.join('\n');
    if (shown !== screens.at(-1).lines.join('\n')) screens.push({ atMs: performance.now() - started, lines });
    const name = /^Type (.+) to go on: $/m.exec(shown)?.[1];
    if (name === undefined || isAnswered) return;
    isAnswered = true;
    setTimeout(() => child.stdin.write(`${name}\r`), pauseMaxMs);
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code) =>
      code === 0 ? resolve(screens) : reject(new Error(`the restore ended with ${code}\n${lines.join('\n')}`)),
    );
  });
}

/** Escapes text for SVG. Spaces become no-break spaces, because SVG merges adjacent spaces. */
const escaped = (text) =>
  text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/ /g, '\u00a0');

/**
 * Draws a group of lines for each screen, visible from its time until the next screen. Without animation the picture
 * shows the last screen, because some viewers do not animate pictures.
 */
function draw(screens) {
  let seconds = 0.6;
  const times = screens.map(({ atMs }, index) => {
    seconds += Math.min(atMs - (screens[index - 1]?.atMs ?? 0), pauseMaxMs) / 1000;
    return seconds.toFixed(2);
  });
  const rows = Math.max(...screens.map(({ lines }) => lines.length));
  const [width, height] = [Math.ceil(columns * size.letter + size.left * 2), size.top + (rows + 1) * size.row];
  const line = (text, row, colour) =>
    `<text x="${size.left}" y="${size.top + row * size.row}"${colour === undefined ? '' : ` fill="${colour}"`}>${escaped(text)}</text>`;
  const groups = screens.map(({ lines }, index) => {
    const isLast = index === screens.length - 1;
    const set = isLast
      ? `<set attributeName="visibility" to="hidden" begin="0s" end="${times[index]}s"/>`
      : `<set attributeName="visibility" to="visible" begin="${times[index]}s" end="${times[index + 1]}s"/>`;
    const texts = lines.map((text, row) => (text === '' ? '' : line(text.trimEnd(), row + 1))).join('');
    return `<g${isLast ? '' : ' visibility="hidden"'}>${set}${texts}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">A site is restored from a terminal</title>
<rect width="${width}" height="${height}" rx="10" fill="#10171c"/><circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="#dbe4ea">
${line('$ drydock sites restore $SITE --backup $BACKUP', 0, '#6cc7d9')}
${groups.join('\n')}
</g></svg>
`;
}

const screens = await record();
fs.writeFileSync(path.join(root, 'docs/restore.svg'), draw(screens));
console.log(`docs/restore.svg: ${screens.length} screens\n${screens.at(-1).lines.join('\n')}`);
