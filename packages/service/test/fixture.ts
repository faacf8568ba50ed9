import { type EndpointDefinition, endpoint } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import { idSchema, pageQuerySchema, text, uuidSchema } from '@drydock/contracts/platform/values';
import { newSecret } from '@drydock/testing/secret';
import type pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import type { Caller } from '../src/access/internal-token';
import { outcomeUnknown } from '../src/effects/perform';
import { type Route, route } from '../src/http/route';
import { createService, type Service, type ServiceOptions } from '../src/http/service';
import { createLog } from '../src/telemetry/log';
import { callService, type ServiceAnswer, type ServiceCall } from '../src/testing/call-service';
import { startTestDatabase, type TestDatabase } from './postgres';

export const tokenSecret = newSecret();
export const caller: Caller = {
  keyId: uuidv7(),
  orgId: uuidv7(),
  mode: 'live',
  scopes: ['sites.view', 'sites.create'],
};

const thingSchema = z.strictObject({ id: uuidSchema, name: z.string() });
const common = { service: 'hosting', summary: 'A test endpoint', tags: ['Test'] } as const;
const thingId = { thingId: { schema: idSchema, notFound: 'site_not_found' } } as const;

const makeThing = endpoint({
  ...common,
  id: 'makeThing',
  method: 'POST',
  path: '/v1/things',
  permissions: ['sites.create'],
  body: z.strictObject({
    name: text(100),
    tags: z.array(z.string()).optional(),
    wish: z.enum(['refuse', 'refuse_for_now', 'fail', 'lie']).optional(),
  }),
  response: { status: 201, schema: thingSchema },
  problems: ['backup_expired', 'operation_in_progress'],
});
const renameThing = endpoint({
  ...common,
  id: 'renameThing',
  method: 'POST',
  path: '/v1/things/{thingId}/name',
  permissions: ['sites.create'],
  params: thingId,
  body: z.strictObject({ name: text(100) }),
  response: { status: 200, schema: thingSchema },
  problems: ['idempotency_in_flight'],
});
const readThing = endpoint({
  ...common,
  id: 'readThing',
  method: 'GET',
  path: '/v1/things/{thingId}',
  permissions: ['sites.view'],
  params: thingId,
  query: pageQuerySchema,
  response: { status: 200, schema: thingSchema },
  problems: [],
});
const pokeThing = endpoint({
  ...common,
  id: 'pokeThing',
  method: 'POST',
  path: '/v1/things/{thingId}/poke',
  permissions: ['sites.create'],
  params: thingId,
  response: { status: 200, schema: thingSchema },
  problems: [],
});
const checkThing = endpoint({
  ...common,
  id: 'checkThing',
  method: 'POST',
  path: '/v1/things/{thingId}/check',
  permissions: ['sites.view'],
  params: thingId,
  body: z.strictObject({ deep: z.boolean().default(false) }),
  response: { status: 200, schema: z.strictObject({ checks: z.int() }) },
  problems: [],
});
const mintSecret = endpoint({
  ...common,
  id: 'mintSecret',
  method: 'POST',
  path: '/v1/secrets',
  permissions: [],
  body: z.strictObject({}),
  response: { status: 201, schema: z.strictObject({ id: uuidSchema, secret: z.string(), after: z.string() }) },
  problems: ['idempotency_in_flight'],
});
const watchThing = endpoint({
  ...common,
  id: 'watchThing',
  method: 'GET',
  path: '/v1/things/{thingId}/events',
  permissions: ['sites.view'],
  params: thingId,
  response: { status: 200, contentType: 'text/event-stream' },
  problems: [],
});

/** Functions by which a test controls the handlers, and records of what the handlers did. */
export interface Levers {
  /** Awaited in `execute` of makeThing and renameThing, before the effect. */
  hold: () => Promise<void>;
  outcome: () => Promise<'done' | 'unknown' | 'refused'>;
  committed: string[];
  actsRun: number;
  checksRun: number;
  /** Awaited by renameThing between its commit and its answer. */
  beforeAnswer: () => Promise<void>;
  events: (lastEventId: string | undefined, signal: AbortSignal) => AsyncIterable<{ id?: string; data: unknown }>;
}

const insert = async (tx: pg.PoolClient, name: string): Promise<{ id: string; name: string }> => {
  const id = uuidv7();
  await tx.query('INSERT INTO things (id, name) VALUES ($1::uuid, $2)', [id, name]);
  return { id, name };
};

/** Throws for the id that no record has. Every other id names a thing of this fixture. */
function assertThere(id: string): void {
  if (id.startsWith('00000000-')) throw problem('site_not_found');
}

function routesOf(levers: Levers): Route<pg.PoolClient>[] {
  return [
    route(makeThing, {
      execute: async (tx: pg.PoolClient, request) => {
        levers.actsRun += 1;
        await levers.hold();
        const thing = await insert(tx, request.body.name);
        request.afterCommit(() => levers.committed.push(thing.id));
        if (request.body.wish === 'refuse') throw problem('backup_expired');
        if (request.body.wish === 'refuse_for_now')
          throw problem('operation_in_progress', { extra: { workflow_id: thing.id } });
        if (request.body.wish === 'fail') throw new Error('secret detail of the failure');
        if (request.body.wish === 'lie') throw problem('domain_in_use');
        return { status: 201, headers: { location: `/v1/things/${thing.id}` }, body: thing };
      },
    }),
    route(renameThing, {
      execute: async (tx: pg.PoolClient, request) => {
        assertThere(request.params.thingId);
        await levers.hold();
        return { status: 200, body: await insert(tx, request.body.name) };
      },
      beforeAnswer: () => levers.beforeAnswer(),
    }),
    route(readThing, {
      read: async ({ params }) => {
        assertThere(params.thingId);
        return { status: 200, body: { id: params.thingId, name: 'read' } };
      },
    }),
    route(checkThing, {
      read: async () => {
        levers.checksRun += 1;
        return { status: 200, body: { checks: levers.checksRun } };
      },
    }),
    route(pokeThing, {
      execute: async (tx: pg.PoolClient) => insert(tx, 'poked'),
      awaitOutcome: async (_request, accepted) => {
        const outcome = await levers.outcome();
        if (outcome === 'unknown') throw outcomeUnknown('dependency_unavailable');
        if (outcome === 'refused') throw problem('dependency_unavailable');
        return { status: 200, body: accepted };
      },
    }),
    route(mintSecret, {
      execute: async (tx: pg.PoolClient, request) => {
        const { id } = await insert(tx, 'secret');
        return {
          status: 201,
          body: { id, secret: `made of ${request.idempotencyKey ?? 'nothing'} and ${id}`, after: 'x' },
        };
      },
      replaySecret: {
        remove: ({ id, after }) => ({ id, after }),
        rehydrate: (stored, rawKey) => {
          const { id, after } = z.object({ id: z.string(), after: z.string() }).parse(stored);
          return { id, secret: `made of ${rawKey} and ${id}`, after };
        },
      },
    }),
    route(watchThing, { stream: async ({ lastEventId, signal }) => levers.events(lastEventId, signal) }),
  ];
}

export interface Fixture {
  service: Service;
  db: TestDatabase;
  levers: Levers;
  logged: string[];
  call(call: Omit<ServiceCall, 'caller'> & { caller?: Caller }): Promise<ServiceAnswer>;
  rows(): Promise<number>;
  close(): Promise<void>;
}

export const definitions: readonly EndpointDefinition[] = [
  makeThing,
  renameThing,
  readThing,
  pokeThing,
  checkThing,
  mintSecret,
  watchThing,
];

export async function startFixture(options: Partial<ServiceOptions<pg.PoolClient>> = {}): Promise<Fixture> {
  const db = await startTestDatabase('CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL)');
  const logged: string[] = [];
  const levers: Levers = {
    hold: async () => undefined,
    outcome: async () => 'done',
    committed: [],
    actsRun: 0,
    checksRun: 0,
    beforeAnswer: async () => undefined,
    events: async function* () {},
  };
  const service = createService({
    name: 'hosting',
    routes: routesOf(levers),
    database: db.database,
    tokenSecret,
    log: createLog({ service: 'hosting', destination: { write: (line) => void logged.push(line) } }),
    ready: { database: () => db.pool.query('SELECT 1') },
    ...options,
  });
  await service.listen(0);
  return {
    service,
    db,
    levers,
    logged,
    call: (call) => callService({ service, name: 'hosting', tokenSecret }, { caller, ...call }),
    rows: async () => Number((await db.pool.query('SELECT count(*) FROM things')).rows[0].count),
    close: async () => {
      await service.close();
      await db.close();
    },
  };
}
