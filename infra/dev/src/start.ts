// `npm start`: the whole of Drydock in processes on this machine, with demo content, until Ctrl-C.
// `npm start -- NAME…`: these processes and what they need, without demo content.
// `npm start -- --traces`: with a page that shows the traces of all of them.

import path from 'node:path';
import { proveProcess, readCommandLine } from '@drydock/process';
import { Listr } from 'listr2';
import type { Demo } from './demo/demo-file';
import { demoToolsOf } from './demo/demo-tools';
import { seedDemo } from './demo/seed-demo';
import { type DevConfig, readDevConfig } from './dev-config';
import { publishDevEnvironment } from './dev-environment';
import { servicesWithDatabase } from './place';
import { openStack, type Stack } from './stack';
import { stopOnSignal } from './stop-on-signal';
import { findPlan, topology } from './topology';
import { startTraceViewer, type TraceViewer } from './traces/trace-viewer';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function main(): Promise<void> {
  const { values, positionals: names } = readCommandLine(usage, {
    options: { traces: { type: 'boolean', default: false } },
    wordsMax: topology.length,
  });
  names.forEach(findPlan);
  const { config, traces } = await withTraces(readDevConfig(process.env), values.traces);
  const stack = await openStack(config, say, names.length === 0 ? {} : { names });
  const { isStopping } = stopOnSignal(async () => {
    say('Stopping …');
    await stack.stop();
    await traces?.close();
  });
  try {
    const shown = names.length === 0 ? await startWithDemo(stack, config) : await startSome(stack, config, names);
    if (isStopping()) return; // a demo seed that was in progress has failed only because of the stop
    const notes = [...stack.notes(), ...(traces === undefined ? [] : [`Traces: ${traces.url} shows the last 300`])];
    process.stdout.write(
      `\n${[...shown, ...notes.map((note) => `  ${note}`)].join('\n')}\n\nCtrl-C stops everything.\n`,
    );
    process.send?.('ready'); // to a test that started us
  } catch (error) {
    if (isStopping()) return; // what was in progress failed because everything stops, and the handler of the signal exits
    say(error instanceof Error ? error.message : String(error));
    await stack.stop();
    process.exit(1);
  }
}

const usage = `npm start [-- [--traces] [NAME…]]
  Everything with demo content; with names these processes and what they need, without it. --traces shows all traces in the browser.`;

/**
 * If wanted, starts the page that shows traces, and makes every process send all of its spans to it, including those of
 * reads.
 */
async function withTraces(config: DevConfig, isWanted: boolean): Promise<{ config: DevConfig; traces?: TraceViewer }> {
  if (!isWanted) return { config };
  const common = config.commonEnvironment;
  const elsewhere = Object.keys(common).find((name) => /^OTEL_EXPORTER_OTLP_(?:TRACES_)?ENDPOINT$/.test(name));
  if (elsewhere !== undefined) throw new Error(`Traces go to ${elsewhere} already: unset it, or leave --traces out`);
  const traces = await startTraceViewer();
  const commonEnvironment = { TRACE_READS: '1', ...common, OTEL_EXPORTER_OTLP_ENDPOINT: traces.url };
  return { config: { ...config, commonEnvironment }, traces };
}

/**
 * Starts everything, and then creates the demo content. Returns a list of what is where, with one command that works as
 * it is printed.
 */
async function startWithDemo(stack: Stack, config: DevConfig): Promise<string[]> {
  let demo: Demo | undefined;
  const seed = async (tell: (line: string) => void): Promise<void> => {
    demo = await seedDemo({
      ...demoToolsOf(stack),
      dataDir: config.dataDir,
      baseUrl: `http://${stack.place.addressOf('gateway')}`,
      processesFile: stack.processesFile,
      extent: config.demo,
      say: tell,
    });
  };
  await runSteps([
    { title: 'Starting the databases, the queue and the services', run: stack.start },
    { title: 'Demo content', run: seed },
  ]);
  if (demo === undefined) throw new Error('No demo content was made');
  const shown = path.relative(process.cwd(), config.dataDir) || '.';
  return [
    `Drydock is up at ${demo.base_url}`,
    '',
    ...demo.sites.map((site) => `  Demo site   ${site.url}`),
    `  API         ${demo.base_url}/docs`,
    `  Keys, ids   ${path.join(shown, 'demo.json')}`,
    `  Processes   ${path.join(shown, 'processes.json')}`,
    `  Logs        ${path.join(shown, 'logs')}`,
    ...(demo.unfinished ?? []).map(
      ({ title, problem }) => `  Not done    ${title}: ${problem}. The next npm start tries again.`,
    ),
    '',
    'Try:',
    `  curl -s ${demo.base_url}/v1/sites -H 'Authorization: Bearer ${demo.live_key}'`,
    `  DRYDOCK_URL=${demo.base_url} DRYDOCK_KEY=${demo.live_key} npm run drydock -- sites list`,
    '',
  ];
}

/** Starts some processes and what they need. Returns how to call each of them. */
async function startSome(stack: Stack, config: DevConfig, names: readonly string[]): Promise<string[]> {
  await runSteps([{ title: `Starting ${names.join(', ')} and what is needed for it`, run: stack.start }]);
  const isService = (name: string): boolean => servicesWithDatabase.some((service) => service === name);
  const owner = proveProcess(process.pid) ?? { pid: process.pid, startedTicks: '' };
  for (const { name, port, environment } of names.filter(isService).map((name) => stack.programOf(name))) {
    publishDevEnvironment(name, { owner, port, environment, down: null });
  }
  const lines = names.flatMap((name) => [
    `  ${name} listens on ${stack.place.addressOf(name)}`,
    ...('entry' in findPlan(name).run ? [`    curl -s http://${stack.place.addressOf(name)}/readyz`] : []),
    // The gateway would sign the request. Here, this command signs it.
    ...(isService(name) ? [`    SERVICE=${name} npm run dev:call METHOD PATH [BODY]`] : []),
  ]);
  return ['Up:', ...lines, `  Logs are in ${path.join(path.relative(process.cwd(), config.dataDir) || '.', 'logs')}`];
}

/** Something that takes a while. `tell` shows a line below it while it runs. */
interface Step {
  title: string;
  run(tell: (line: string) => void): Promise<void>;
}

/**
 * Runs steps in order: as a moving list on a terminal, and as one plain line for each step in CI or a pipe. The first
 * step that fails ends the run.
 */
async function runSteps(steps: readonly Step[], output: NodeJS.WriteStream = process.stdout): Promise<void> {
  if (!output.isTTY || (process.env['CI'] ?? '') !== '') {
    for (const step of steps) {
      output.write(`${step.title}\n`);
      await step.run((line) => output.write(`  ${line}\n`));
    }
    return;
  }
  const tasks = steps.map((step) => ({
    title: step.title,
    task: (_context: unknown, task: { output: string }) =>
      step.run((line) => {
        task.output = line;
      }),
  }));
  // the supervisor handles signals, while listr2 would end the process at once
  await new Listr(tasks, { registerSignalListeners: false, rendererOptions: { collapseErrors: false } }).run();
}

void main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
