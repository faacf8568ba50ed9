/**
 * @tier long
 * @processes
 * @root long
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, chown, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { listFetched } from '@drydock/mysql';
import { findProgram } from '@drydock/process';
import { skipTests } from '@drydock/testing/skipped';
import { until } from '@drydock/testing/wait';
import { packSite, stageSite } from '../test/archives';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../test/host';

const run = promisify(execFile);
const tree = path.join(process.env['DRYDOCK_TREES'] ?? '/var/cache/drydock-trees', 'wordpress/usr/share/wordpress');
const php = findProgram(['php']);
const extension = ['-d', 'extension=mysqlnd', '-d', 'extension=mysqli', '-d', 'display_errors=0', '-d', 'log_errors=1'];

const siteId = newSiteId();
let host: TestHost;
let site: FilledSite;
let folder: string;

/** An application that starts PHP's own server in its box, and passes visitors on to it. */
const app = `
const { spawn } = require('node:child_process');
const http = require('node:http');
spawn('php', ['-n', ...${JSON.stringify(extension)}, '-S', '127.0.0.1:8080', '-t', '/site'], { stdio: 'inherit' });
const ask = (request, response, attempt) => {
  const options = { host: '127.0.0.1', port: 8080, path: request.url, method: request.method, headers: request.headers };
  const asked = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  asked.on('error', (error) => {
    if (error.code === 'ECONNREFUSED' && attempt < 100) setTimeout(() => ask(request, response, attempt + 1), 100);
    else response.writeHead(502).end(String(error));
  });
  asked.end();
};
http.createServer((request, response) => ask(request, response, 0)).listen(0);
`;

function configOf({ database_url, url }: FilledSite): string {
  const { username, password, hostname, port, pathname } = new URL(database_url);
  const define = Object.entries({
    ...{
      DB_NAME: pathname.slice(1),
      DB_USER: username,
      DB_PASSWORD: password,
      DB_HOST: `${hostname}:${port}`,
      DB_CHARSET: 'utf8mb4',
      DB_COLLATE: '',
    },
    ...{
      WP_HOME: url.replace(/\/$/, ''),
      WP_SITEURL: url.replace(/\/$/, ''),
      AUTH_KEY: 'one',
      SECURE_AUTH_KEY: 'two',
      LOGGED_IN_KEY: 'three',
      NONCE_KEY: 'four',
    },
  }).map(([name, value]) => `define('${name}', '${value}');`);
  return `<?php\n${define.join('\n')}\ndefine('DISABLE_WP_CRON', true);\n$table_prefix = 'wp_';\nif (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');\nrequire_once ABSPATH . 'wp-settings.php';\n`;
}

/** Runs PHP within WordPress, like an administrator's shell. */
async function inWordpress(code: string, before = ''): Promise<string> {
  const source = `${before} $_SERVER['HTTP_HOST'] = '${new URL(site.url).host}'; require '${site.files_dir}/wp-load.php'; ${code}`;
  const { stdout } = await run(String(php), ['-n', ...extension, '-r', source], {
    cwd: site.files_dir,
    maxBuffer: 2 ** 24,
  });
  return stdout;
}

const post = (title: string, content: string): Promise<string> =>
  inWordpress(
    `echo wp_insert_post(['post_title' => ${JSON.stringify(title)}, 'post_content' => ${JSON.stringify(content)}, 'post_status' => 'publish', 'post_author' => 1]);`,
  );

const titles = async (): Promise<string[]> => {
  const html = await (await fetch(site.url)).text();
  return [...html.matchAll(/class="[^"]*wp-block-post-title"[^>]*><a[^>]*>([^<]+)</g)].map(([, title]) => title ?? '');
};

/** Returns a checksum of every table, as WordPress' own account reads it. */
const content = (): Promise<string> =>
  inWordpress(
    'global $wpdb; foreach ($wpdb->get_col(\'show tables\') as $table) { echo $table, \' \', $wpdb->get_row("checksum table `$table`", ARRAY_N)[1], "\\n"; }',
  );

const suite = (): void => {
  beforeAll(async () => {
    host = await startHost(await hostConfig());
    folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-wordpress-'));
    site = await host.client.ensureSite(siteId, { domain: 'blog.org', database: 'mysql' }, claim(1));
    for (const name of await readdir(tree))
      if (name !== '.htaccess')
        // A link into a package that is not installed is left out.
        await cp(path.join(tree, name), path.join(site.files_dir, name), {
          recursive: true,
          dereference: true,
          filter: (from) => existsSync(from),
        });
    await writeFile(path.join(site.files_dir, 'wp-config.php'), configOf(site));
    await writeFile(path.join(site.files_dir, 'app.js'), app);
    const { owner } = site;
    if (owner !== null) {
      for (const name of await readdir(site.files_dir, { recursive: true }))
        await chown(path.join(site.files_dir, name), owner.uid, owner.gid);
    }
    await inWordpress(
      "require_once ABSPATH . 'wp-admin/includes/upgrade.php'; wp_install('Harbour news', 'admin', 'a@blog.org', true, '', 'correct horse');",
      "define('WP_INSTALLING', true);",
    );
  });
  afterAll(async () => {
    await clearHost(host, [siteId]);
    await rm(folder, { recursive: true, force: true });
  });

  test('a blog is backed up, broken and restored: its pages, its rows, its files and its login are what they were', async () => {
    await post('Grüße aus dem Hafen 🚢', 'Ein Beitrag mit “Anführungszeichen” und 🐳.');
    expect(await titles()).toEqual(['Grüße aus dem Hafen 🚢', 'Hello world!']);
    const rows = await content();
    expect(rows.split('\n').length).toBeGreaterThan(12);
    const functionsFile = 'wp-includes/functions.php';
    const functions = await readFile(path.join(site.files_dir, functionsFile), 'utf8');
    const archive = await packSite(host, siteId, {
      releaseId: 'initial',
      folder: path.join(folder, 'blog'),
      fence: 10,
    });

    await inWordpress("global $wpdb; $wpdb->query('drop table wp_posts'); $wpdb->query('truncate wp_users');");
    await appendFile(path.join(site.files_dir, functionsFile), 'this is no PHP');
    const broken = await fetch(site.url);
    expect([broken.status, (await broken.text()).includes('Grüße')]).toEqual([500, false]);

    await stageSite(host, siteId, archive, { releaseId: 'restored', fence: 11 });
    await host.client.switchRelease(siteId, { releaseId: 'restored', expectedRelease: 'initial' }, claim(11));
    await host.client.thawSite(siteId, claim(11));
    site = await host.client.readSite(siteId);
    expect(await readFile(path.join(site.files_dir, functionsFile), 'utf8')).toBe(functions);
    expect(await content()).toBe(rows);
    expect(await titles()).toEqual(['Grüße aus dem Hafen 🚢', 'Hello world!']);
    expect(await inWordpress("echo get_class(wp_authenticate('admin', 'correct horse'));")).toBe('WP_User');

    await post('After the restore', 'It goes on.');
    await until(async () => (await titles())[0] === 'After the restore', { what: 'the new post' });
  });
};

describe('WordPress', () => {
  const missing = [
    ...(php === null ? ['apt-get install php-cli php-mysql'] : []),
    ...(existsSync(tree) ? [] : ['.ci/fetch-trees']),
    ...(listFetched().some(({ flavour }) => flavour === 'mariadb') ? [] : ['npm run engines -- mariadb@10.11']),
  ];
  if (missing.length === 0) suite();
  else skipTests('all of it', missing.join(', '));
});
