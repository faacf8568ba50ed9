import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, request, type Server, type ServerResponse } from 'node:http';
import path from 'node:path';
import { probeHeader } from '../src/providers/ssh/site-host.ssh';
import { freePort, waitForPort } from './ssh-processes';

/** Stands in for the web server that an operator configures on a host over ssh. */
export interface HostWeb {
  port: number;
  close(): Promise<void>;
}

interface App {
  child: ChildProcess;
  port: number;
  seconds: number;
}

function isInMaintenance(folder: string): boolean {
  const file = path.join(folder, 'maintenance');
  return existsSync(file) && Number(readFileSync(file, 'utf8').split('\n')[0]) * 1_000 > Date.now();
}

async function renderPage(folder: string, askDatabase: (sql: string) => Promise<string>): Promise<string> {
  const page = readFileSync(path.join(folder, 'current/files/index.html'), 'utf8');
  const [query, sql] = /<\?sql (.*?) \?>/.exec(page) ?? [];
  return query === undefined || sql === undefined ? page : page.replace(query, await askDatabase(sql));
}

/** Runs applications by Passenger's contract: after each change of tmp/restart.txt a fresh process answers. */
class Apps {
  readonly #running = new Map<string, App>();

  async take(filesDir: string): Promise<App> {
    const file = path.join(filesDir, 'tmp/restart.txt');
    const seconds = existsSync(file) ? Math.floor(statSync(file).mtimeMs / 1_000) : 0;
    const known = this.#running.get(filesDir);
    if (known?.seconds === seconds && known.child.exitCode === null) return known;
    known?.child.kill('SIGKILL');
    const port = await freePort();
    const child = spawn(process.execPath, ['app.js'], { cwd: filesDir, env: { PORT: String(port) }, stdio: 'ignore' });
    const app = { child, port, seconds };
    this.#running.set(filesDir, app);
    const isUp = waitForPort(port);
    isUp.catch(() => undefined);
    await Promise.race([
      isUp,
      new Promise((_, reject) => child.once('exit', () => reject(new Error('the application ended')))),
    ]);
    return app;
  }

  close(): void {
    for (const { child } of this.#running.values()) child.kill('SIGKILL');
  }
}

function forward({ port }: App, response: ServerResponse): void {
  request({ host: '127.0.0.1', port, agent: false }, (answer) => {
    response.writeHead(answer.statusCode ?? 502);
    answer.pipe(response);
  })
    .on('error', () => response.writeHead(502).end())
    .end();
}

const siteUrlPattern = /^\/(live|sandbox)\/([^/]+)\/$/;

/**
 * Serves the current release of each site and runs applications. Answers 503 to visitors while the maintenance flag is
 * set.
 */
export async function serveSites(
  sitesDir: string,
  askDatabaseOf: (site: { mode: string; siteId: string }) => (sql: string) => Promise<string>,
): Promise<HostWeb> {
  const apps = new Apps();
  const server: Server = createServer((incoming, response) => {
    const [, mode = '', siteId = ''] = siteUrlPattern.exec(incoming.url ?? '') ?? [];
    const folder = path.join(sitesDir, mode, siteId);
    const filesDir = path.join(folder, 'current/files');
    if (mode === '' || !existsSync(filesDir)) return void response.writeHead(404).end();
    if (isInMaintenance(folder) && incoming.headers[probeHeader] === undefined)
      return void response.writeHead(503).end();
    if (existsSync(path.join(filesDir, 'app.js'))) {
      return void apps.take(filesDir).then(
        (app) => forward(app, response),
        () => response.writeHead(500).end(),
      );
    }
    renderPage(folder, askDatabaseOf({ mode, siteId })).then(
      (page) => response.end(page),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the web server has no port');
  return {
    port: address.port,
    close: async () => {
      apps.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
