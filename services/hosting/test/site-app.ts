import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { HostingWorld } from './hosting-world';

/**
 * The application identifies its process by a random number, because each box has its own pids and two processes may
 * have the same pid.
 */
const source = `const number = require('node:crypto').randomInt(2 ** 47);
require('node:http').createServer((_request, answer) => answer.end(String(number))).listen(3000);
`;

/** Makes the site an application that answers with the number of its process. `text` replaces its code. */
export async function putApp({ placeOf }: HostingWorld, siteId: string, text = source): Promise<void> {
  writeFileSync(path.join((await placeOf(siteId)).filesDir, 'app.js'), text);
}

/** The number of the process that answers now. */
export async function processOf({ host }: HostingWorld, siteId: string): Promise<number> {
  const answer = await fetch((await host.readSite(siteId)).url);
  if (answer.status !== 200) throw new Error(`the application answered ${answer.status}`);
  return Number(await answer.text());
}
