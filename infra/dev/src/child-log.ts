import fs from 'node:fs';
import path from 'node:path';

/** One earlier file is kept beside the current one. */
const bytesMax = 10 << 20;

export interface ChildLog {
  file: string;
  write(chunk: string | Buffer): void;
}

/** Appends to `<folder>/<name>.log`; a file that has grown past 10 MB becomes `<name>.1.log`. What cannot be written is lost. */
export function openChildLog(folder: string, name: string): ChildLog {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, `${name}.log`);
  let bytes = fs.existsSync(file) ? fs.statSync(file).size : 0;
  return {
    file,
    write: (chunk) => {
      try {
        if (bytes > bytesMax) {
          fs.renameSync(file, path.join(folder, `${name}.1.log`));
          bytes = 0;
        }
        fs.appendFileSync(file, chunk, { mode: 0o600 });
        bytes += chunk.length;
      } catch {
        // A full disk costs these lines. Thrown from where a child's output comes in it would end us, and every process with us.
      }
    },
  };
}

/** The last lines of a log, for an error message. */
export function readLastLines(file: string, linesMax: number): string {
  if (!fs.existsSync(file)) return '(it wrote no log)';
  return fs.readFileSync(file, 'utf8').trimEnd().split('\n').slice(-linesMax).join('\n');
}
