import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { HostingWorld } from './hosting-world';

const source = "require('node:http').createServer((_request, answer) => answer.end(String(process.pid))).listen(3000);\n";

/** Makes the site an application that tells its pid; `text` in place of the working code. */
export async function putApp({ host }: HostingWorld, siteId: string, text = source): Promise<void> {
  writeFileSync(path.join((await host.readSite(siteId)).files_dir, 'app.js'), text);
}

/** Which process answers now. */
export async function pidOf({ host }: HostingWorld, siteId: string): Promise<number> {
  const answer = await fetch((await host.readSite(siteId)).url);
  if (answer.status !== 200) throw new Error(`the application answered ${answer.status}`);
  return Number(await answer.text());
}
