// `npm run dev SERVICE`: one service, its API and its worker, with what they own and nothing else, compiled and started again at every change.
import fs from 'node:fs';
import path from 'node:path';
import { type GuardedChild, spawnGuarded } from '@drydock/process/guarded-child';
import { readDevConfig } from './dev-config';
import { type DevEnvironment, devDataDir, publishDevEnvironment } from './dev-environment';
import { type DevStores, startDevStores } from './dev-stores';
import { inRepo } from './repo-root';
import { type ServiceWithDatabase, servicesWithDatabase } from './service-names';
import { stopOnSignal } from './stop-on-signal';
import { type TypeWatch, watchTypes } from './watch-types';

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const stopTimeoutMs = 28_000;

/** Node's own watcher: starts the process again whenever a file that it has loaded was compiled anew. */
function watchProgram(service: string, role: string, { environment, workerEnvironment, port }: DevEnvironment): Promise<GuardedChild> {
  const entry = inRepo(`services/${service}/dist/${role}.js`);
  const preload = inRepo('packages/service/dist/telemetry/telemetry.js');
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

async function run(service: ServiceWithDatabase): Promise<void> {
  const dataDir = devDataDir(service);
  const children: GuardedChild[] = [];
  let stores: DevStores | undefined;
  let types: TypeWatch | undefined;
  const { isStopping } = stopOnSignal(async () => {
    await types?.stop();
    await Promise.all(children.map((child) => child.stop('SIGTERM', stopTimeoutMs)));
    await stores?.stop();
  });
  stores = await startDevStores(service, { ...readDevConfig(process.env), dataDir }, say);
  if (isStopping()) return stores.stop();
  const packages = fs.readdirSync(inRepo('packages')).map((name) => inRepo(`packages/${name}/src`));
  const sources = [inRepo(`services/${service}/src`), ...packages.filter((folder) => fs.existsSync(folder))];
  types = watchTypes(service, inRepo(`services/${service}`), sources, say);
  const roles = fs.existsSync(inRepo(`services/${service}/src/worker.ts`)) ? (['server', 'worker'] as const) : (['server'] as const);
  for (const role of roles) children.push(await watchProgram(service, role, stores.environment));
  publishDevEnvironment(service, stores.environment);
  say(`${service} listens on http://127.0.0.1:${stores.environment.port}; npm run dev:call GET /healthz asks it`);
  say(`Its data is in ${path.relative(process.cwd(), dataDir)}; Ctrl-C ends it`);
}

async function main(service: string | undefined): Promise<void> {
  const known = servicesWithDatabase.find((name) => name === service);
  if (known === undefined) throw new Error(`usage: npm run dev ${servicesWithDatabase.join('|')}`);
  await run(known);
}

void main(process.argv[2]).catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
