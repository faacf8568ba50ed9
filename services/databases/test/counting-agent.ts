import { createDatabaseHostReaderClient, type DatabaseHostReaderClient } from '@drydock/agent/clients';
import { controlRoutesOf, createControlServer, ok } from '@drydock/agent/control';
import {
  type DatabaseDescription,
  DatabaseHostError,
  type DatabaseHostErrorCode,
  type DatabaseStorage,
  databaseDescriptionSchema,
  databaseHostProtocol,
  hostStorageSchema,
  storageAnswerSchema,
} from '@drydock/agent/database';
import { tokenKeys } from '@drydock/service/access';
import { closeServer, listen } from '@drydock/service/http';
import { createLog } from '@drydock/service/telemetry';
import { newSecret } from '@drydock/testing/secret';

export interface CountingAgent {
  /** The storage that the agent reports, by the id of the database. Tests change it. */
  counted: Record<string, DatabaseStorage>;
  /** The description of each database, or the code with which the agent refuses to describe it. */
  described: Record<string, DatabaseDescription | DatabaseHostErrorCode>;
  /** The settings with which an API asks this agent. */
  environment: Record<string, string>;
  client: DatabaseHostReaderClient;
  close(): Promise<void>;
}

/** Starts a stand-in for a database agent. It answers only with the storage and the descriptions that a test sets. */
export async function startCountingAgent(): Promise<CountingAgent> {
  const counted: Record<string, DatabaseStorage> = {};
  const described: CountingAgent['described'] = {};
  const describe = (id: string): DatabaseDescription => {
    const found = described[id] ?? 'unknown_database';
    if (typeof found === 'string') throw new DatabaseHostError(found, `of ${id}`);
    return found;
  };
  const secret = newSecret();
  const { route, hostRoute } = controlRoutesOf(databaseHostProtocol.things, {
    change: async (): Promise<never> => {
      throw new Error('this agent changes nothing');
    },
  });
  const server = createControlServer({
    protocol: databaseHostProtocol,
    routes: [
      hostRoute('GET /storage', async () => ok({ databases: counted }), hostStorageSchema),
      route('GET', async (id) => ok(describe(id)), databaseDescriptionSchema),
      route('GET /storage', async (id) => ok({ storage: counted[id] ?? null }), storageAnswerSchema),
    ],
    keys: tokenKeys(newSecret()),
    readerKeys: tokenKeys(secret),
    log: createLog({ service: 'database-host', level: 'silent' }),
    check: async () => undefined,
  });
  const { url } = await listen(server, 0);
  const client = createDatabaseHostReaderClient({ url, secret });
  return {
    counted,
    described,
    environment: { DATABASE_HOST_URL: url, DATABASE_HOST_READER_SECRET: secret },
    client,
    close: async () => {
      await client.close();
      await closeServer(server);
    },
  };
}
