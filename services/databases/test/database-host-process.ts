import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createDatabaseHostClient, type DatabaseHostClient } from '@drydock/agent/clients';
import { findFreePort } from '@drydock/process';
import { type LedgerEntry, readLedger } from '@drydock/testing/ledger';
import { newSecret } from '@drydock/testing/secret';
import { until } from '@drydock/testing/wait';

export interface DatabaseHostProcess {
  client: DatabaseHostClient;
  url: string;
  readerSecret: string;
  secret: string;
  /** The changes that the agent was asked for, accepted or refused, from its ledger. */
  ledger(): LedgerEntry[];
  /** Kills the agent with SIGKILL and starts it again on its folder. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real database agent from the build output, with a folder of its own. */
export async function startDatabaseHost(): Promise<DatabaseHostProcess> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-databases-'));
  // If the test runs as root, the servers run under other accounts, which must be able to enter the folder.
  await chmod(folder, 0o711);
  const [secret, readerSecret, port] = [newSecret(), newSecret(), await findFreePort()];
  const url = `http://127.0.0.1:${port}`;
  const entry = path.resolve(__dirname, '../../database-agent/dist/server.js');
  const env = {
    ...process.env,
    PORT: String(port),
    LOG_LEVEL: 'fatal',
    DATABASES_DIR: path.join(folder, 'databases'),
    DATABASE_HOST_SECRET: secret,
    DATABASE_HOST_READER_SECRET: readerSecret,
  };

  const launch = async () => {
    const child = spawn(process.execPath, [entry], { env, stdio: ['ignore', 'inherit', 'inherit'] });
    await until(async () => child.exitCode !== null || (await fetch(`${url}/readyz`)).ok, {
      what: 'the host',
      timeoutMs: 120_000,
    });
    if (child.exitCode !== null) throw new Error(`the host ended with ${child.exitCode}`);
    return child;
  };
  let child = await launch();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  const client = createDatabaseHostClient({ url, secret });
  return {
    client,
    url,
    secret,
    readerSecret,
    ledger: () => readLedger(path.join(env.DATABASES_DIR, 'ledger.ndjson')),
    restart: async () => {
      await end('SIGKILL');
      child = await launch();
    },
    stop: async () => {
      await client.close();
      await end('SIGTERM');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
