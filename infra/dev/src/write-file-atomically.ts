import fs from 'node:fs';

/** Replaces a file in one step: a reader sees the old content or the new, also after a kill -9. Readable by us alone. */
export function writeFileAtomically(file: string, content: string): void {
  const unfinished = `${file}.${process.pid}`;
  fs.writeFileSync(unfinished, content, { mode: 0o600 });
  fs.renameSync(unfinished, file);
}

export function writeJsonAtomically(file: string, value: unknown): void {
  writeFileAtomically(file, `${JSON.stringify(value, null, 2)}\n`);
}
