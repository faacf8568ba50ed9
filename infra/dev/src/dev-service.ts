// `npm run dev SERVICE`: one service, its API and its worker, with what they own and nothing else, compiled and started again at every change.

import fs from 'node:fs';
import path from 'node:path';
import { readCommandLine } from '@drydock/process/command-line';
import { type GuardedChild, spawnGuarded } from '@drydock/process/guarded-child';
import { proveProcess } from '@drydock/process/process-proof';
import { inRepo, readDevConfig } from './dev-config';
import { type DevEnvironment, devDataDir, publishDevEnvironment } from './dev-environment';
import { type DevProgram, runDevProgram } from './dev-program';
import { type ServiceWithDatabase, servicesWithDatabase } from './place';
import { openStack, type Stack } from './stack';
import { stopOnSignal } from './stop-on-signal';
import { type TypeWatch, watchTypes } from './watch-types';

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const nameOf = (service: string, role: string): string => (role === 'worker' ? `${service}-worker` : service);

/** Runs one of its programs from `dist`. */
function start(service: string, role: string, { environment, workerEnvironment, port }: DevEnvironment): Promise<GuardedChild> {
  const entry = inRepo(`services/${service}/dist/${role}.js`);
  const preload = inRepo('packages/service/dist/telemetry/telemetry.js');
  return spawnGuarded(process.execPath, ['--require', preload, '--enable-source-maps', entry], {
    cwd: inRepo(`services/${service}`),
    env: {
      ...(role === 'worker' ? workerEnvironment : environment),
      SERVICE_NAME: nameOf(service, role),
      HOST: '127.0.0.1',
      PORT: role === 'worker' ? '0' : String(port),
    },
    stdio: ['ignore', 'inherit', 'pipe'],
    signalOnOrphan: 'SIGTERM',
  });
}

async function run(service: ServiceWithDatabase): Promise<void> {
  const dataDir = devDataDir(service);
  const roles = fs.existsSync(inRepo(`services/${service}/src/worker.ts`)) ? (['server', 'worker'] as const) : (['server'] as const);
  const names = roles.map((role) => nameOf(service, role));
  let programs: DevProgram[] = [];
  let stack: Stack | undefined;
  let types: TypeWatch | undefined;
  const { isStopping } = stopOnSignal(async () => {
    await types?.stop();
    await Promise.all(programs.map((program) => program.stop()));
    await stack?.stop();
  });
  stack = await openStack({ ...readDevConfig(process.env), dataDir }, say, { names, without: names });
  await stack.start(() => undefined);
  if (isStopping()) return stack.stop();
  const [environment = {}, workerEnvironment = {}] = names.map((name) => stack?.programOf(name).environment);
  const owner = proveProcess(process.pid) ?? { pid: process.pid, startedTicks: '' };
  const published: DevEnvironment = { owner, port: stack.programOf(service).port, environment, workerEnvironment };
  const packages = fs.readdirSync(inRepo('packages')).map((name) => inRepo(`packages/${name}/src`));
  const sources = [inRepo(`services/${service}/src`), ...packages.filter((folder) => fs.existsSync(folder))];
  publishDevEnvironment(service, published);
  programs = roles.map((role) =>
    runDevProgram({
      name: nameOf(service, role),
      start: () => start(service, role, published),
      url: role === 'server' ? `http://127.0.0.1:${published.port}` : undefined,
      say,
    }),
  );
  const onCompiled = (): void => {
    for (const program of programs) program.restart();
  };
  types = await watchTypes({ name: service, project: inRepo(`services/${service}`), sources, say, onCompiled });
  say(`Its data is in ${path.relative(process.cwd(), dataDir)}; Ctrl-C ends it`);
}

async function main(service: string | undefined): Promise<void> {
  const known = servicesWithDatabase.find((name) => name === service);
  if (known === undefined) throw new Error(`usage: ${usage}`);
  await run(known);
}

const usage = `npm run dev ${servicesWithDatabase.join('|')}`;
void main(readCommandLine(usage, { options: {}, wordsMax: 1 }).positionals[0]).catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
