import type { DatabaseDescription } from '@drydock/agent/database';
import { createLog } from '@drydock/service/telemetry';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { type CountingAgent, startCountingAgent } from '../../test/counting-agent';
import { givenDatabase, startApi } from '../../test/databases-api';
import { type DatabasesDatabase, openDatabase } from '../context/database.store';
import { localDatabaseReader } from '../providers/database-provider.local';
import { keepEndingForgottenMoves } from './forgotten-moves';

const owner = callerOf();
let agent: CountingAgent;
let api: ServiceApi;
let database: DatabasesDatabase;
beforeAll(async () => {
  agent = await startCountingAgent();
  api = await startApi(owner, agent.environment);
  database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
});
afterAll(async () => {
  await database.close();
  await api.close();
  await agent.close();
});

/** Describes a database of version 16 in which an upgrade to 17 has begun. */
const inUpgrade = (database_id: string, upgrade_id: string): DatabaseDescription => ({
  database_id,
  mode: 'live',
  host: '127.0.0.1',
  port: 1,
  ca_certificate: '',
  database_name: 'db',
  username: 'u',
  major: 16,
  is_up: true,
  size_bytes: 1,
  free_bytes: 1,
  switched: [],
  upgrade: {
    upgrade_id,
    to_major: 17,
    path: 'offline',
    phase: 'prepared',
    are_writes_blocked: true,
    writes_blocked_ms: null,
  },
});

it('a database that cannot be described keeps no forgotten move of another database from its end; it is named in the log, and the look counts as failed', async () => {
  const lines: string[] = [];
  const log = createLog({ service: 'test', level: 'debug', destination: { write: (line) => void lines.push(line) } });
  const [unreadable, blocked] = [await givenDatabase(api, owner), await givenDatabase(api, owner)];
  agent.described[unreadable] = 'instance_down';
  agent.described[blocked] = inUpgrade(blocked, 'forgotten');
  const looking = keepEndingForgottenMoves({ database, provider: localDatabaseReader(agent.client) }, log);
  try {
    await until(async () => lines.some((line) => line.includes('forgotten moves could not be looked for')));
  } finally {
    await looking.stop();
  }
  const begun = await api.rows('SELECT subject_id, kind, input FROM workflow');
  expect(begun).toEqual([{ subject_id: blocked, kind: 'end_abandoned_upgrade', input: { upgradeId: 'forgotten' } }]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'warn', forgotten_moves: 1 },
    { level: 'warn', failed: 1, database_ids: [unreadable] },
    { level: 'debug', err: { code: 'instance_down' } },
  ]);
});
