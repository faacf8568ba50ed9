import { endpoint } from '@drydock/contracts/platform/endpoint';
import type pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { openPool, pgDatabase } from '../database/pool';
import { route } from '../http/route';
import { createService } from '../http/service';
import { apiFields, processFields, readConfig, secretField } from '../process/config';
import { closeOnSignal, createLifetime, shutdownLimitMs } from '../process/shutdown';
import { createLog } from '../telemetry/log';

/** A minimal service. Tests run it as a process of its own, to kill, stop and trace it. */
const config = readConfig(
  {
    ...processFields('kit-test'),
    ...apiFields,
    DATABASE_URL: z.url(),
    INTERNAL_TOKEN_SECRET: secretField('Signs the calls of the test'),
  },
  process.env,
);

const makeThing = endpoint({
  id: 'makeThing',
  service: 'hosting',
  method: 'POST',
  path: '/v1/things/{name}',
  summary: 'Makes a thing; `held` waits for the advisory lock 1, `crash` rejects where nobody listens',
  permissions: [],
  params: { name: { schema: z.string(), notFound: 'site_not_found' } },
  response: { status: 201, schema: z.strictObject({ id: z.string() }) },
  problems: [],
  tags: [],
});

const countThings = endpoint({
  id: 'countThings',
  service: 'hosting',
  method: 'GET',
  path: '/v1/things/{name}',
  summary: 'Counts the things of a name; `broken` fails',
  permissions: [],
  params: { name: { schema: z.string(), notFound: 'site_not_found' } },
  response: { status: 200, schema: z.strictObject({ count: z.int() }) },
  problems: [],
  tags: [],
});

async function main(): Promise<void> {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const drainMs = config.DRAIN_SECONDS * 1_000;
  const lifetime = createLifetime(log, shutdownLimitMs + drainMs);
  closeOnSignal(lifetime, log);
  const pool = openPool(config.DATABASE_URL);
  lifetime.onClose('database', () => pool.end());
  const service = createService({
    name: config.SERVICE_NAME,
    routes: [
      route(makeThing, {
        execute: async (tx: pg.PoolClient, { params }) => {
          const id = uuidv7();
          if (params.name === 'crash') void Promise.reject(new Error('nobody listens'));
          if (params.name === 'held') await tx.query('SELECT pg_advisory_xact_lock(1)');
          await tx.query('INSERT INTO things (id, name) VALUES ($1::uuid, $2)', [id, params.name]);
          return { status: 201, body: { id } };
        },
      }),
      route(countThings, {
        read: async ({ params }) => {
          if (params.name === 'broken') throw new Error('it is broken');
          const { rows } = await pool.query('SELECT count(*)::int AS count FROM things WHERE name = $1', [params.name]);
          return { status: 200, body: { count: rows[0].count } };
        },
      }),
    ],
    database: pgDatabase(pool),
    tokenSecret: config.INTERNAL_TOKEN_SECRET,
    log,
    ready: { database: () => pool.query('SELECT 1') },
  });
  lifetime.onClose('http', () => service.close(), 10_000);
  lifetime.onClose('drain', () => service.drain(drainMs), drainMs + 1_000);
  const { port } = await service.listen(config.PORT, config.HOST);
  log.info({ port }, 'listening');
}

void main();
