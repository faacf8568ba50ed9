import fs from 'node:fs';
import path from 'node:path';
import { findFreePort, isSameProcess } from '@drydock/process';
import mysql from 'mysql2/promise';
import type { Engine } from '../src/engines/list-engines';
import { ask, makeCertificate, Servers, serverFolder } from './servers';

/**
 * If the tests run as root, the server runs under this account. Otherwise the server runs in a box, if the machine
 * allows boxes.
 */
const account = 300_905;

/** `npm test` runs only these cases of a server. */
export function durabilityCases(engine: Engine): void {
  const servers = new Servers();
  afterEach(() => servers.close());

  test('keeps every acknowledged row over a kill -9', async () => {
    const folder = serverFolder();
    const before = process.env['DRYDOCK_EPHEMERAL'];
    delete process.env['DRYDOCK_EPHEMERAL'];
    try {
      const server = await servers.start(engine, { folder, account });
      await ask(server.admin, 'CREATE DATABASE d', 'CREATE TABLE d.kept (n INT PRIMARY KEY)');
      const writer = await mysql.createConnection(server.admin);
      writer.on('error', () => undefined);
      let acknowledged = 0;
      const writing = (async () => {
        for (;;) {
          await writer.query('INSERT INTO d.kept VALUES (?)', [acknowledged + 1]);
          acknowledged += 1;
          if (acknowledged === 50) process.kill(server.proof.pid, 'SIGKILL');
        }
      })();
      await expect(writing).rejects.toThrow();
      writer.destroy();
      await server.exited;
      const again = await servers.start(engine, { folder, account });
      const [row] = (await ask(again.admin, 'SELECT COUNT(*) AS n, MAX(n) AS last FROM d.kept')) as {
        n: number;
        last: number;
      }[];
      expect(row?.n).toBe(row?.last);
      expect(row?.n).toBeGreaterThanOrEqual(acknowledged);
    } finally {
      process.env['DRYDOCK_EPHEMERAL'] = before;
    }
  });
}

export function serverCases(engine: Engine): void {
  const servers = new Servers();
  let folder: string;
  beforeEach(() => {
    folder = serverFolder();
  });
  afterEach(() => servers.close());

  test('has only the platform’s accounts, no database, and no access to files', async () => {
    const server = await servers.start(engine, { folder, account });
    const accounts = await ask(server.admin, 'SELECT User, Host FROM mysql.user');
    const strangers = (accounts as { User: string }[]).filter(
      ({ User }) => !/^(root|mariadb\.sys|mysql\.\w+)$/.test(User),
    );
    expect(strangers).toEqual([]);
    expect(JSON.stringify(await ask(server.admin, 'SHOW DATABASES'))).not.toContain('test');
    await expect(ask({ ...server.admin, password: '' }, 'SELECT 1')).rejects.toMatchObject({
      code: 'ER_ACCESS_DENIED_ERROR',
    });
    expect(await ask(server.admin, "SELECT LOAD_FILE('/etc/passwd') AS f")).toEqual([{ f: null }]);
    const outfile = ask(server.admin, `SELECT 1 INTO OUTFILE '${folder}/written'`);
    await expect(outfile).rejects.toMatchObject({ code: 'ER_OPTION_PREVENTS_STATEMENT' });
    const settings =
      'SELECT @@local_infile AS l, @@event_scheduler AS e, @@log_bin AS b, @@binlog_format AS f, @@skip_networking AS n';
    expect(await ask(server.admin, settings)).toEqual([{ l: 0, e: 'OFF', b: 1, f: 'ROW', n: 1 }]);
    expect(await ask(server.admin, 'SET GLOBAL event_scheduler = ON', 'SELECT @@event_scheduler AS e')).toEqual([
      { e: 'ON' },
    ]);
    expect(fs.statSync(path.join(folder, 'password')).mode & 0o777).toBe(0o600);
  });

  test('ends the leftover server of an earlier run on the same data, and removes the folder of an interrupted creation', async () => {
    const unfinished = path.join(folder, `${engine.flavour}-${engine.version}.unfinished`);
    fs.mkdirSync(path.join(unfinished, 'data'), { recursive: true });
    fs.writeFileSync(path.join(unfinished, 'data/half'), '');
    const earlier = await servers.start(engine, { folder, account });
    expect(fs.existsSync(unfinished)).toBe(false);
    await ask(earlier.admin, 'CREATE DATABASE d', 'CREATE TABLE d.kept AS SELECT 7 AS n');
    const later = await servers.start(engine, { folder, account });
    expect(isSameProcess(earlier.proof)).toBe(false);
    expect(await ask(later.admin, 'SELECT n FROM d.kept')).toEqual([{ n: 7 }]);
  });

  test('serves an address by TLS alone, with the certificate that it was given', async () => {
    const port = await findFreePort();
    const tls = makeCertificate(folder, account);
    const server = await servers.start(engine, { folder, account, listen: { address: '127.0.0.1', port, tls } });
    await ask(server.admin, "CREATE USER customer IDENTIFIED BY 'Secret-1'");
    const login = { host: '127.0.0.1', port, user: 'customer', password: 'Secret-1' };
    await expect(ask(login, 'SELECT 1')).rejects.toMatchObject({
      code: expect.stringMatching(/ACCESS_DENIED|SECURE_TRANSPORT/),
    });
    const ssl = { ca: fs.readFileSync(tls.certificate, 'utf8') };
    expect(await ask({ ...login, ssl }, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    const asRoot = { ...login, ssl, user: 'root', password: server.admin.password };
    await expect(ask(asRoot, 'SELECT 1')).rejects.toThrow();
  });

  test('says why it does not start', async () => {
    const start = servers.start(engine, { folder, settings: { 'no-such-setting': '1' } });
    await expect(start).rejects.toThrow(/no-such-setting/);
  });
}
