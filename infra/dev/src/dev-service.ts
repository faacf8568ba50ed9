// `npm run dev NAME`: runs one service (its API and its worker), the gateway or an agent, and everything that it needs.
// At every change the code is compiled and the program is restarted. `--seed` also runs the rest of `npm start` and
// creates the demo content. `--inspect` opens the debugger's port.

import fs from 'node:fs';
import path from 'node:path';
import { type GuardedChild, proveProcess, readCommandLine, spawnGuarded } from '@drydock/process';
import { demoToolsOf } from './demo/demo-tools';
import { seedDemo } from './demo/seed-demo';
import { type DevConfig, inRepo, readDevConfig } from './dev-config';
import { devDataDir, publishDevEnvironment } from './dev-environment';
import { type DevProgram, runDevProgram } from './dev-program';
import type { NodeProgram } from './managed-process';
import { servicesWithDatabase } from './place';
import { openStack, type Stack } from './stack';
import { stopOnSignal } from './stop-on-signal';
import { topology } from './topology';
import { type TypeWatch, watchTypes } from './watch-types';

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const developable = [...servicesWithDatabase, 'gateway', 'site-host', 'database-host'];
/** The default port of Node's debugger. The debugger of the worker uses the next port. */
const inspectorPort = 9_229;

/** Returns the folder of the package to which a built program belongs. */
const folderOf = (entry: string): string => path.dirname(path.dirname(inRepo(entry)));
const isWorker = (name: string): boolean => name.endsWith('-worker');
const isService = (name: string): boolean => servicesWithDatabase.some((service) => service === name);

function start({ name, entry, flags, environment, port }: NodeProgram, isInspected: boolean): Promise<GuardedChild> {
  const preload = inRepo('packages/service/dist/telemetry/preload.js');
  const inspect = isInspected ? [`--inspect=127.0.0.1:${inspectorPort + (isWorker(name) ? 1 : 0)}`] : [];
  return spawnGuarded(process.execPath, [...inspect, ...flags, '--require', preload, inRepo(entry)], {
    cwd: folderOf(entry),
    env: { ...environment, SERVICE_NAME: name, HOST: '127.0.0.1', PORT: isWorker(name) ? '0' : String(port) },
    stdio: ['ignore', 'inherit', 'pipe'],
    signalOnOrphan: 'SIGTERM',
  });
}

async function run(service: string, options: { inspect: boolean; seed: boolean }): Promise<void> {
  const config: DevConfig = { ...readDevConfig(process.env), dataDir: devDataDir(service), port: 0 };
  const names = [service, `${service}-worker`].filter((name) => topology.some((plan) => plan.name === name));
  let programs: DevProgram[] = [];
  let stack: Stack | undefined;
  let types: Promise<TypeWatch> | undefined;
  const { isStopping } = stopOnSignal(async () => {
    await (await types)?.stop();
    await Promise.all(programs.map((program) => program.stop()));
    await stack?.stop();
  });
  let onAnswer = (): void => undefined;
  const answered = new Promise<void>((resolve) => {
    onAnswer = resolve;
  });
  const onSpawned = (): void => {
    if (stack === undefined || isStopping()) return;
    programs = runPrograms(stack, names, { isInspected: options.inspect, onAnswer });
    types = watch(stack.programOf(service), programs);
  };
  stack = await openStack(config, say, { ...(options.seed ? {} : { names }), without: names, onSpawned });
  await stack.start(() => undefined);
  await types;
  if (isStopping()) return stack.stop();
  say(`Its data is in ${path.relative(process.cwd(), config.dataDir)}; Ctrl-C ends it`);
  if (!options.seed) return;
  await answered;
  await seed(stack, config);
}

/** Compiles the package of the program and all of packages/ at each change, and then restarts `programs`. */
function watch({ name, entry }: NodeProgram, programs: readonly DevProgram[]): Promise<TypeWatch> {
  const project = folderOf(entry);
  const packages = fs.readdirSync(inRepo('packages')).map((folder) => inRepo(`packages/${folder}/src`));
  const sources = [path.join(project, 'src'), ...packages.filter((folder) => fs.existsSync(folder))];
  const onCompiled = (): void => {
    for (const program of programs) program.restart();
  };
  return watchTypes({ name, project, sources, say, onCompiled });
}

function runPrograms(
  stack: Stack,
  names: readonly string[],
  on: { isInspected: boolean; onAnswer: () => void },
): DevProgram[] {
  const owner = proveProcess(process.pid) ?? { pid: process.pid, startedTicks: '' };
  return names.map((name) => {
    const program = stack.programOf(name);
    if (isWorker(name))
      return runDevProgram({ name, start: () => start(program, on.isInspected), url: undefined, say });
    const { port, environment } = program;
    const url = `http://127.0.0.1:${port}`;
    const onState = (down: string | null): void => {
      publishDevEnvironment(name, { owner, port, environment, down });
      if (down === null) on.onAnswer();
    };
    onState('it is starting');
    const how = isService(name) ? 'npm run dev:call GET /healthz' : `curl ${url}/healthz`;
    return runDevProgram({ name, start: () => start(program, on.isInspected), url, how, onState, say });
  });
}

async function seed(stack: Stack, config: DevConfig): Promise<void> {
  const demo = await seedDemo({
    ...demoToolsOf(stack),
    dataDir: config.dataDir,
    baseUrl: `http://${stack.place.addressOf('gateway')}`,
    processesFile: stack.processesFile,
    extent: config.demo,
    say,
  });
  say(
    `The gateway is at ${demo.base_url}, keys and ids are in ${path.join(path.relative(process.cwd(), config.dataDir), 'demo.json')}`,
  );
}

const usage = `npm run dev ${developable.join('|')} [-- [--inspect] [--seed]]
  --inspect opens the debugger at ${inspectorPort}, the worker's at ${inspectorPort + 1}; --seed runs everything else too, with the demo content`;

async function main(): Promise<void> {
  const flags = { inspect: { type: 'boolean', default: false }, seed: { type: 'boolean', default: false } } as const;
  const { values, positionals } = readCommandLine(usage, { options: flags, wordsMax: 1 });
  const [name = ''] = positionals;
  if (!developable.includes(name)) throw new Error(`usage: ${usage}`);
  await run(name, values);
}

void main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
