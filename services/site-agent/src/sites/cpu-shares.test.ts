/**
 * This test uses real sites that take the CPU of this machine. cpu-samples.test.ts tests the decisions with simulated
 * processes.
 *
 * @tier long
 * @processes
 * @root long
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { niceOf } from '@drydock/agent/host';
import { readNice, readProcessUse } from '@drydock/process';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';

let host: TestHost;
/** Two sites belong to an organisation that takes all CPU, and one to another organisation. */
const ids = { greedy: newSiteId(), sister: newSiteId(), other: newSiteId() };
let sites: Record<keyof typeof ids, FilledSite>;

beforeAll(async () => {
  host = await startHost({ ...(await hostConfig()), SITES_DATABASE_URL: undefined });
  const make = (name: keyof typeof ids, organisation_id: string) =>
    host.client.ensureSite(ids[name], { domain: `${name}.example.org`, organisation_id }, claim(1));
  sites = {
    greedy: await make('greedy', 'org-1'),
    sister: await make('sister', 'org-1'),
    other: await make('other', 'org-2'),
  };
});
afterAll(async () => {
  await clearHost(host, Object.values(ids));
});

/** /burn starts an endless computation in a process with its own session, and /stop ends it. */
const app = `let child = null;
  require('http').createServer((request, answer) => {
    if (request.url === '/burn') child ??= require('child_process').spawn(process.execPath, ['-e', 'for (;;);'], { detached: true });
    if (request.url === '/stop') child.kill('SIGKILL');
    answer.end(String(process.pid));
  }).listen(1);`;

const niceOfPid = (pid: number | null): number | null => {
  if (pid === null) return null;
  const { thread, session } = readNice(pid);
  return session ?? thread;
};
const niceOfApp = async (name: keyof typeof ids): Promise<number | null> =>
  niceOfPid((await host.client.readApp(ids[name])).pid);

/**
 * Whether priorities change here. On a kernel without autogroups (`sched_autogroup_enabled`), an ordinary user cannot
 * raise a priority again, so no priority is lowered.
 */
const canSink = process.getuid?.() === 0 || readNice(process.pid).session !== null;

async function findProcess(isIt: (commandLine: string) => boolean): Promise<number | null> {
  for (const pid of readProcessUse().keys()) {
    try {
      if (isIt(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))) return pid;
    } catch {
      // The process has ended.
    }
  }
  return null;
}

const itWith = canSink ? test : test.skip;
itWith(
  `an organisation that takes the CPU sinks with all its sites, sessions and child processes while another is there, and comes back up when it is alone${canSink ? '' : ' (needs root, or a kernel that groups sessions)'}`,
  async () => {
    for (const site of Object.values(sites)) writeFileSync(path.join(site.files_dir, 'app.js'), app);
    for (const site of Object.values(sites)) expect((await fetch(site.url)).status).toBe(200);
    const client = new pg.Client({ connectionString: sites.greedy.database_url });
    await client.connect();
    const session = await findProcess((line) =>
      line.startsWith(`postgres: ${new URL(sites.greedy.database_url).username} `),
    );
    await fetch(new URL('burn', sites.greedy.url));
    const burning = await findProcess((line) => line.endsWith('-e\0for (;;);\0'));
    await until(
      async () => {
        await (await fetch(sites.other.url)).text();
        const [greedy, sister, other] = [
          await niceOfApp('greedy'),
          await niceOfApp('sister'),
          await niceOfApp('other'),
        ];
        if (greedy === null || other === null || greedy < other + 3) return false;
        return [sister, niceOfPid(session), niceOfPid(burning)].every((nice) => nice !== null && nice >= other + 3);
      },
      { timeoutMs: 120_000, what: 'the greedy organisation below the other' },
    );
    const isBack = async () => (await niceOfApp('greedy')) === niceOf(0) && niceOfPid(burning) === niceOf(0);
    await until(isBack, { timeoutMs: 120_000, what: 'its former priority' });
    await fetch(new URL('stop', sites.greedy.url));
    await client.end();
  },
  400_000,
);
