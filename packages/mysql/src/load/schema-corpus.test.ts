/**
 * @tier long
 * @processes
 */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { ask } from '../../test/ask';
import { allEngines, describeEngines, skipTests } from '../../test/engines';
import { Servers } from '../../test/servers';
import { holdDump, transfer } from '../../test/transfer';
import type { MysqlServer } from '../server/mysql';

/** Those of real programs, which `.ci/fetch-schemas` has brought. */
const folder = path.join(process.env['DRYDOCK_SCHEMAS'] ?? '/var/cache/drydock-schemas', 'mysql');
const files = fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => name.endsWith('.sql')) : [];

/** Loads a schema by the client of the same folder, as the customer. Resolves with its complaint, since not every program supports every version. */
function loadAsCustomer({ engine, socketPath }: MysqlServer, database: string, file: string): Promise<string> {
  const [program = '', ...first] = engine.programs.client ?? [];
  const messages = [`--character-sets-dir=${engine.share}/charsets`, '--default-character-set=utf8mb4'];
  const args = [...first, '--no-defaults', ...messages, `--socket=${socketPath}`, '--user=owner', database];
  return new Promise((resolve) => {
    const child = execFile(program, args, { env: { MYSQL_PWD: 'Owner-1', PATH: '/usr/bin:/bin' } }, (error, _stdout, stderr) =>
      resolve(error === null ? '' : stderr.trim()),
    );
    child.stdin?.on('error', () => undefined);
    fs.createReadStream(file).pipe(child.stdin ?? process.stderr);
  });
}

if (files.length === 0) skipTests('schemas of real programs', '.ci/fetch-schemas');
else {
  describeEngines(allEngines, (engine) => {
    const servers = new Servers();
    afterAll(() => servers.close());

    test(`of ${files.length} real programs those that this version takes come back as they were, with their rows`, async () => {
      const from = await servers.start(engine);
      await ask(from.admin, "CREATE USER owner IDENTIFIED BY 'Owner-1'");
      const refused: string[] = [];
      for (const file of files) {
        const database = path.basename(file, '.sql').replaceAll(/\W/g, '_');
        await ask(from.admin, `CREATE DATABASE ${database}`, `GRANT ALL PRIVILEGES ON ${database}.* TO owner`);
        const complaint = await loadAsCustomer(from, database, path.join(folder, file));
        if (complaint !== '') refused.push(`${file}: ${complaint}`);
      }
      const before = await holdDump(from);
      const to = await servers.start(engine);
      const { findings } = await transfer(from, to);
      expect(findings.filter(({ code }) => code !== 'not_transactional')).toEqual([]);
      expect(await holdDump(to)).toEqual(before);
      // Half of them at least, so that this says something; what a version does not take is told with the reason.
      expect(refused.slice(files.length / 2)).toEqual([]);
    });
  });
}
