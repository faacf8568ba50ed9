// `pnpm turbo run dev --filter=@drydock/<service>` runs this twice at most: `SERVICE server` and `SERVICE worker`.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type GuardedChild, spawnGuarded } from '@drydock/embedded/guarded-child';
import { readDevConfig } from './dev-config';
import { type DevEnvironment, devDataDir, publishDevEnvironment, readDevEnvironment } from './dev-environment';
import { startDevStores } from './dev-stores';
import { inRepo } from './repo-root';
import { type ServiceWithDatabase, servicesWithDatabase } from './service-names';
import { stopOnSignal } from './stop-on-signal';

const say = (line: string): void => void process.stderr.write(`${line}\n`);
/** A first start makes two Postgres clusters. */
const waitForServerMs = 120_000;
const stopTimeoutMs = 28_000;

/** Node's own watcher: starts the process again whenever a file that it has loaded was compiled anew. */
function watchProgram(service: string, role: string, { environment, workerEnvironment, port }: DevEnvironment): Promise<GuardedChild> {
  const entry = inRepo(`services/${service}/dist/${role}.js`);
  const preload = inRepo('packages/service-kit/dist/telemetry.js');
  const name = role === 'worker' ? `${service}-worker` : service;
  return spawnGuarded(process.execPath, ['--watch', '--watch-preserve-output', '--require', preload, '--enable-source-maps', entry], {
    cwd: inRepo(`services/${service}`),
    env: {
      ...(role === 'worker' ? workerEnvironment : environment),
      SERVICE_NAME: name,
      HOST: '127.0.0.1',
      PORT: role === 'worker' ? '0' : String(port),
    },
    stdio: ['ignore', 'inherit', 'inherit'],
    signalOnOrphan: 'SIGTERM',
  });
}

async function runServer(service: ServiceWithDatabase): Promise<void> {
  const dataDir = devDataDir(service);
  const stores = await startDevStores(service, { ...readDevConfig(process.env), dataDir }, say);
  const children: GuardedChild[] = [];
  stopOnSignal(async () => {
    await Promise.all(children.map((child) => child.stop('SIGTERM', stopTimeoutMs)));
    await stores.stop();
  });
  const compiler = await spawnGuarded(inRepo('node_modules/.bin/tsc'), ['-b', '--watch', '--preserveWatchOutput'], {
    cwd: inRepo(`services/${service}`),
    stdio: ['ignore', 'ignore', 'inherit'],
    signalOnOrphan: 'SIGTERM',
    isWrapper: true,
  });
  children.push(compiler, await watchProgram(service, 'server', stores.environment));
  publishDevEnvironment(service, stores.environment);
  say(`${service} listens on http://127.0.0.1:${stores.environment.port}; pnpm dev:call GET /healthz asks it`);
  say(`Its data is in ${path.relative(process.cwd(), dataDir)}`);
}

async function runWorker(service: ServiceWithDatabase): Promise<void> {
  const until = performance.now() + waitForServerMs;
  let environment = readDevEnvironment(service);
  while (environment === null) {
    if (performance.now() > until) throw new Error(`The databases of ${service} did not come up; does its "dev" run?`);
    await sleep(100);
    environment = readDevEnvironment(service);
  }
  const child = await watchProgram(service, 'worker', environment);
  stopOnSignal(() => child.stop('SIGTERM', stopTimeoutMs));
}

async function main(service: string | undefined, role: string | undefined): Promise<void> {
  const known = servicesWithDatabase.find((name) => name === service);
  if (known === undefined || (role !== 'server' && role !== 'worker')) {
    throw new Error(`usage: dev-service.js ${servicesWithDatabase.join('|')} server|worker`);
  }
  await (role === 'server' ? runServer(known) : runWorker(known));
}

void main(process.argv[2], process.argv[3]).catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
