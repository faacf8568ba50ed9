import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { handOver, isSameProcess } from '@drydock/process';
import mysql, { type Connection } from 'mysql2/promise';
import type { MysqlServer } from '../src/server/mysql';
import { ask, serverFolder } from './servers';

/** Settings whose values change by themselves, or through loads and upgrades of the platform. */
const restless =
  /gtid|binlog_pos|timestamp|last_insert_id|rand_seed|innodb_buffer_pool_(?:dump|load)|slave_(?:run_triggers|max_allowed)|server_uuid/;

interface Watched {
  server: MysqlServer;
  session: Connection;
  facts: string;
}

/**
 * Objects that no customer may read, change or stop: a file and a folder of the account that runs the customer's
 * servers, a table on a neighbour's server, the neighbour's process, and sessions of the platform. The accounts,
 * rights, settings and plugins of each server are canaries as well.
 */
export class Canaries {
  readonly folder: string;
  readonly file: string;
  private readonly secret = `canary-${randomBytes(16).toString('hex')}`;
  private readonly neighbour: MysqlServer;
  private readonly watched: Watched[] = [];

  private constructor(neighbour: MysqlServer) {
    this.neighbour = neighbour;
    this.folder = path.join(serverFolder(), 'closed');
    this.file = path.join(this.folder, 'secret');
    fs.mkdirSync(this.folder);
    fs.writeFileSync(this.file, this.secret, { mode: 0o600 });
  }

  /**
   * `neighbour` is another customer's server. `account` is the account under which the hostile customer's servers run.
   */
  static async start(neighbour: MysqlServer, account: number): Promise<Canaries> {
    const canaries = new Canaries(neighbour);
    await handOver(canaries.folder, account);
    await ask(neighbour.admin, 'CREATE DATABASE canary', 'CREATE TABLE canary.secret (secret VARCHAR(100))');
    await ask(neighbour.admin, `INSERT INTO canary.secret VALUES ('${canaries.secret}')`);
    await canaries.watch(neighbour);
    return canaries;
  }

  /**
   * Watches a server from now on: its accounts, rights, settings and plugins must not change. Returns the id of a
   * session on it that must stay open.
   */
  async watch(server: MysqlServer): Promise<number> {
    const session = await mysql.createConnection(server.admin);
    session.on('error', () => undefined);
    this.watched.push({ server, session, facts: await factsOf(server) });
    return session.threadId;
  }

  isIn(text: string): boolean {
    return text.includes(this.secret);
  }

  /** Returns the canaries that have changed. The list is empty if nothing was harmed. */
  async harm(): Promise<string[]> {
    const found: string[] = [];
    if (fs.readFileSync(this.file, 'utf8') !== this.secret) found.push('the file was changed');
    if (fs.readdirSync(this.folder).join() !== 'secret')
      found.push(`files were written: ${fs.readdirSync(this.folder).join()}`);
    for (const { server, session, facts } of this.watched) {
      const name = `${server.engine.flavour}@${server.engine.version}`;
      if (!isSameProcess(server.proof)) found.push(`${name} has ended`);
      const isAlive = await session.query('SELECT 1').then(
        () => true,
        () => false,
      );
      if (!isAlive) found.push(`our session on ${name} was ended`);
      const now = await factsOf(server);
      if (now !== facts) found.push(`${name}: ${differenceOf(facts, now)}`);
    }
    const rows = JSON.stringify(await ask(this.neighbour.admin, 'SELECT secret FROM canary.secret'));
    if (rows !== JSON.stringify([{ secret: this.secret }])) found.push('the neighbour’s table was changed');
    return found;
  }

  async stop(): Promise<void> {
    for (const { session } of this.watched) session.destroy();
    fs.rmSync(path.dirname(this.folder), { recursive: true, force: true });
  }
}

/** Returns the accounts with their rights, the settings, the plugins, and the functions from libraries. */
async function factsOf({ admin, engine: { flavour } }: MysqlServer): Promise<string> {
  const privileges =
    flavour === 'mariadb' ? 'SELECT Host, User, Priv FROM mysql.global_priv' : 'SELECT * FROM mysql.user';
  const settings = (await ask(admin, 'SHOW GLOBAL VARIABLES')) as { Variable_name: string; Value: string }[];
  const others = [
    `${privileges} ORDER BY User, Host`,
    'SELECT * FROM mysql.func',
    'SELECT name FROM mysql.plugin',
    'SELECT * FROM mysql.servers',
  ];
  const found = [
    settings
      .filter(({ Variable_name: name }) => !restless.test(name))
      .map(({ Variable_name: name, Value: value }) => `${name} = ${value}`),
  ];
  for (const sql of others) found.push(((await ask(admin, sql)) as object[]).map((row) => JSON.stringify(row)));
  return found.flat().join('\n');
}

function differenceOf(before: string, after: string): string {
  const [left, right] = [before.split('\n'), after.split('\n')];
  return [
    ...left.filter((line) => !right.includes(line)).map((line) => `- ${line}`),
    ...right.filter((line) => !left.includes(line)).map((line) => `+ ${line}`),
  ].join('; ');
}
