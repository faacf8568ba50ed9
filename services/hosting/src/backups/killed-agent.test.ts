/**
 * Kills a site agent while a restore has frozen its site.
 *
 * @tier long
 * @processes
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { PortAllocator } from '@drydock/agent/host';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import {
  type HostingWorld,
  makeBackup,
  makeSite,
  openWorld,
  type SiteAgentConfig,
  type StartSiteAgent,
} from '../../test/hosting-world';
import { fillSite, pageOf, stateOf } from '../../test/site-state';

const faults = createFaultTokens();

/** The agent as a process, which keeps its port when it starts again. */
class AgentProcess {
  private child: ChildProcess | undefined;
  private environment: NodeJS.ProcessEnv = {};
  private url = '';

  readonly start: StartSiteAgent = async (config: SiteAgentConfig) => {
    const port = await new PortAllocator(config.HOST).allocate();
    const settings = Object.entries(config).filter(([, value]) => value !== undefined);
    this.environment = {
      ...process.env,
      ...Object.fromEntries(settings.map(([name, value]) => [name, String(value)])),
      PORT: String(port),
      DRYDOCK_FAULTS: faults.folder,
    };
    this.url = `http://${config.HOST}:${port}`;
    await this.run();
    return { url: this.url, stop: () => this.kill('SIGTERM') };
  };

  async run(): Promise<void> {
    const program = path.resolve(__dirname, '../../../site-agent/dist/server.js');
    this.child = spawn(process.execPath, [program], { env: this.environment, stdio: ['ignore', 'inherit', 'inherit'] });
    await until(async () => (await fetch(`${this.url}/readyz`)).ok, { timeoutMs: 90_000, what: 'the agent' });
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    if (this.child === undefined || this.isGone) return;
    const gone = once(this.child, 'exit');
    this.child.kill(signal);
    await gone;
  }

  get isGone(): boolean {
    return this.child?.exitCode !== null || this.child.signalCode !== null;
  }
}

const agent = new AgentProcess();
let world: HostingWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf(), {}, agent.start);
});
afterAll(async () => {
  await world.close();
  faults.remove();
});

it('an agent killed before the probe keeps the site closed after its start, until the restore has ended', async () => {
  world.spawnWorker();
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const wanted = await stateOf(world, siteId);
  const backupId = await makeBackup(world, siteId);
  await fillSite(world, siteId, 2);
  const { url, current_release: replaced } = await world.host.readSite(siteId);
  const { databaseUrl } = await world.placeOf(siteId);
  faults.arm('site_host.switch.after_rename', 'kill');
  const accepted = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, {
    body: { backup_id: backupId },
  });
  await until(() => agent.isGone, { timeoutMs: 90_000, what: 'the death of the agent' });
  // Without workers nobody probes or thaws the site.
  await world.endWorkers();
  await agent.run();
  const found = await world.host.readSite(siteId);
  expect([found.frozen, found.current_release === replaced]).toEqual([true, false]);

  const visitor = new pg.Client({ connectionString: databaseUrl });
  const through: string[] = [];
  const page = pageOf(url).finally(() => through.push('page'));
  const written = visitor
    .connect()
    .then(() => visitor.query("INSERT INTO only_in_1 (note) VALUES ('of a visitor')"))
    .finally(() => through.push('write'));
  // An agent that thaws the site by itself would have let the visitors in before it answered this call.
  expect(await world.host.probeSite(siteId, '/')).toMatchObject({ http_status: 200, sql_ok: true });
  expect([(await world.host.readSite(siteId)).frozen, through]).toEqual([true, []]);

  world.spawnWorker();
  expect(await ended(world, accepted.headers['location'])).toMatchObject({ status: 'succeeded' });
  expect(await page).toBe(wanted.page);
  await written;
  const kept = await visitor.query("SELECT v FROM version, only_in_1 WHERE note = 'of a visitor'");
  expect(kept.rows).toEqual([{ v: 1 }]);
  await visitor.end();
  expect((await world.host.readSite(siteId)).frozen).toBe(false);
});
