import path from 'node:path';
import { openDatabase as openHosting } from '@drydock/hosting/context/database.store';
import { purgeDeletedSitesWorkflow } from '@drydock/hosting/deleted-sites/purge-deleted-sites.workflow';
import { chooseBackup } from '@drydock/hosting/proofs/proof.store';
import { expireBackupsWorkflow } from '@drydock/hosting/retention/expire-backups.workflow';
import { sweepBackupsWorkflow } from '@drydock/hosting/retention/sweep-backups.workflow';
import { openDatabase as openKeys } from '@drydock/keys/context/database.store';
import { listEvents } from '@drydock/keys/events/event.store';
import { sequenceEvents } from '@drydock/keys/events/sequencer';
import { claimDeliveries, listDeliveries, purgeEvents } from '@drydock/keys/webhooks/delivery.store';
import { listWorkflows, purgeWorkflows } from '@drydock/keys/workflows/workflow.store';
import { runMigrations, startPostgres } from '@drydock/postgres';
import { countUnfinished, firstOrg, overdueStarts, takeDueWorkflows } from '@drydock/workflow/dispatch';
import { forgetRuns, purgeWorkflows as purgeFinished, runDueSchedules } from '@drydock/workflow/store';
import pg from 'pg';
import { say } from './report';
import { fillDatabase, sizes } from './scale-data';
import { createRecorder, middle, type Recorder } from './scale-statements';
import { withWorkspace } from './workspace';

const root = path.resolve(__dirname, '../../..');
/** The goal for each statement in milliseconds, however long the history is. */
const barMs = 10;
const log = {
  debug() {},
  info() {},
  warn: (fields: object, text: string) => say(`${text} ${JSON.stringify(fields)}`),
  error() {},
};

type Measure = (what: string, work: () => Promise<unknown>) => Promise<void>;

/**
 * Measures statements of hosting and keys on databases with the history of a large installation. They are the
 * statements of recurring work, such as sweeps and purges, and of lists. Prints for each statement its time, and the
 * indexes with which it finds its rows.
 */
export const benchScale = (): Promise<void> =>
  withWorkspace('scale', async (folder) => {
    const settings = { shared_buffers: '256MB', max_wal_size: '4GB', autovacuum: 'off' };
    const server = await startPostgres({ folder: path.join(folder, 'postgres'), isEphemeral: true, settings });
    try {
      const recorder = createRecorder();
      for (const service of ['hosting', 'keys'] as const) {
        const url = await makeFilled(server.adminUrl, service);
        const { lines, measure } = table(recorder);
        await (service === 'hosting' ? measureHosting(url, measure) : measureKeys(url, measure));
        process.stdout.write(
          `### ${service}\n\n| what | statement | calls | rows | ms, median | | indexes |\n|---|---|---|---|---|---|---|\n${lines.join('\n')}\n\n`,
        );
      }
    } finally {
      await server.stop();
    }
  });

async function makeFilled(adminUrl: string, service: 'hosting' | 'keys'): Promise<string> {
  const url = new URL(adminUrl);
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${service}`);
  await admin.end();
  url.pathname = service;
  await runMigrations(path.join(root, 'services', service), url.href);
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await fillDatabase(client, service);
  await client.end();
  return url.href;
}

function table(recorder: Recorder): { lines: string[]; measure: Measure } {
  const lines: string[] = [];
  const measure: Measure = async (what, work) => {
    const begun = performance.now();
    const statements = await recorder.record(work);
    const seconds = (performance.now() - begun) / 1_000;
    for (const { text, calls, rows, ms, plan } of statements) {
      const shown = text.replace(/\s+/g, ' ').trim().slice(0, 60).replaceAll('|', '\\|');
      const cost = middle(ms);
      lines.push(
        `| ${what} | \`${shown}\` | ${calls} | ${rows} | ${cost.toFixed(1)} | ${cost < barMs ? 'ok' : `MISSED (bar ${barMs})`} | ${plan} |`,
      );
    }
    say(`${what}: ${seconds.toFixed(1)} s`);
  };
  return { lines, measure };
}

/** Repeats the work nine times, for a median. */
const often = async (work: () => Promise<unknown>): Promise<void> => {
  for (let turn = 0; turn < 9; turn += 1) await work();
};

async function measureHosting(url: string, measure: Measure): Promise<void> {
  const database = openHosting(url, { max: 4 });
  const sql = database.sql();
  const now = (): Date => new Date();
  const backupStorage = { locationIn: () => 'object_storage', removeAll: async () => ({ lockedObjects: 0 }) };
  const context = { database, now, backupStorage } as never;
  const step = { mode: 'live', requestId: 'bench', signal: new AbortController().signal, log };
  const runSteps = async (workflow: {
    steps: readonly { name: string; run(step: never, context: never): Promise<unknown> }[];
  }) => {
    const outputs: Record<string, unknown> = {};
    for (const { name, run } of workflow.steps)
      outputs[name] = await run({ ...step, outputs, input: { deletedSiteId: null } } as never, context);
  };
  let fromOrg = firstOrg;
  await measure(`sweep, ${sizes.waitingOrgs} organisations waiting`, () =>
    often(async () => {
      const page = await takeDueWorkflows(sql, {
        ...{
          kind: 'default',
          limit: 50,
          enqueueAgainSeconds: 120,
          queueEmpty: false,
          fullOrgs: [],
          fromOrg,
          hadTurns: false,
        },
      });
      if (page.due.length !== 50) throw new Error(`${page.due.length} workflows were found`);
      fromOrg = page.nextOrg ?? firstOrg;
    }),
  );
  await measure('starts that came too late', () => often(() => overdueStarts(sql)));
  await measure('schedules', () => often(() => runDueSchedules(database, log)));
  await measure('unfinished work by kind', () => often(() => countUnfinished(sql, [])));
  await measure('purge of finished workflows', () => often(() => purgeFinished(sql)));
  await measure('runs that are forgotten', () =>
    often(() => database.transaction((tx) => forgetRuns(database.sql(tx), 'check_serving'))),
  );
  await measure('choice of the drill', () => often(() => chooseBackup(database.pool, 'live', now())));
  await measure('purge of deleted sites', () => runSteps(purgeDeletedSitesWorkflow));
  await measure('an hour of expiry', () => runSteps(expireBackupsWorkflow));
  await measure('ten minutes of nightly backups', () => runSteps(sweepBackupsWorkflow));
  await database.close();
}

async function measureKeys(url: string, measure: Measure): Promise<void> {
  const database = openKeys(url, { max: 4 });
  const sql = database.sql();
  const { rows } = await readOrg(url);
  const owner = { orgId: rows[0]?.org_id ?? '', mode: 'live' as const };
  const page = { order: 'newest', position: null, take: 51 } as const;
  await measure('order of events', () => often(() => sequenceEvents(database)));
  await measure('claim of deliveries', () =>
    often(() => claimDeliveries(sql, { most: 32, mostOfOrg: 4, sending: {}, leaseSeconds: 60, afterOrg: firstOrg })),
  );
  await measure('list of events', () => often(() => listEvents(sql, { ...owner, types: null, resource: null }, page)));
  await measure('list of rare events', () =>
    often(() => listEvents(sql, { ...owner, types: ['workflow.failed'], resource: null }, page)),
  );
  await measure('list of deliveries', () => often(() => listDeliveries(sql, owner.orgId, { after: null, take: 51 })));
  await measure('list of workflows', () => often(() => listWorkflows(sql, owner, { after: null, take: 51 }, {})));
  await measure('list of those that wait', () =>
    often(() => listWorkflows(sql, owner, { after: null, take: 51 }, { status: ['needs_attention'] })),
  );
  await measure('purge of events', () => often(() => purgeEvents(database, 100)));
  await measure('purge of workflows', () => often(() => purgeWorkflows(sql, 100)));
  await database.close();
}

async function readOrg(url: string): Promise<pg.QueryResult<{ org_id: string }>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const found = await client.query<{ org_id: string }>('SELECT org_id FROM events LIMIT 1');
  await client.end();
  return found;
}
