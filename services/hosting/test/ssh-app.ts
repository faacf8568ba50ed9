import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const script = `require('node:http').createServer((q, s) => s.end(String(process.pid))).listen(process.env.PORT, '127.0.0.1')`;

/** Makes a site on a host over ssh an application that answers with its process id. */
export function putAppOverSsh(filesDir: string): void {
  mkdirSync(path.join(filesDir, 'tmp'), { recursive: true });
  writeFileSync(path.join(filesDir, 'app.js'), script);
}
