// `npm start`: runs the whole of Drydock on this machine, with demo content, until Ctrl-C. `npm start -- NAME…` runs
// only these processes and the processes that they need, without demo content. `npm start -- --traces` also serves a
// page that shows the latest traces.

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
    if (isStopping()) return; // a part of the demo may be missing only because of the stop
    const notes = [...stack.notes(), ...(traces === undefined ? [] : [`Traces: ${traces.url} shows the last 300`])];
    process.stdout.write(
      `\n${[...shown, ...notes.map((note) => `  ${note}`)].join('\n')}\n\nCtrl-C stops everything.\n`,
    );
    process.send?.('ready'); // a test that has spawned this process waits for the message
  } catch (error) {
    if (isStopping()) return; // the error comes from the stop, and stopOnSignal exits
    say(error instanceof Error ? error.message : String(error));
    await stack.stop();
    process.exit(1);
  }
}

const usage = `npm start [-- [--traces] [NAME…]]
  Everything with demo content; with names these processes and what they need, without it. --traces shows all traces in the browser.`;

/**
 * Starts the page of traces if it is wanted. Returns a configuration with which all processes send their spans to that
 * page.
 */
async function withTraces(config: DevConfig, isWanted: boolean): Promise<{ config: DevConfig; traces?: TraceViewer }> {
  if (!isWanted) return { config };
  const common = config.commonEnvironment;
  const elsewhere = Object.keys(common).find((name) => /^OTEL_EXPORTER_OTLP_(?:TRACES_)?ENDPOINT$/.test(name));
  if (elsewhere !== undefined) throw new Error(`Traces go to ${elsewhere} already: unset it, or leave --traces out`);
  const traces = await startTraceViewer();
  const commonEnvironment = {
    TRACE_READS: '1',
    OTEL_BSP_SCHEDULE_DELAY: '500', // so that a trace can be seen soon after the request
    ...common,
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
  };
  return { config: { ...config, commonEnvironment }, traces };
}

/**
 * Starts everything, and then creates the demo content. Returns lines for the user: the addresses, and commands to
 * paste.
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

/** Starts the named processes and those that they need. Returns lines that tell the user how to call each process. */
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
    // There may be no gateway, so the line shows `npm run dev:call`, which signs the request itself.
    ...(isService(name) ? [`    SERVICE=${name} npm run dev:call METHOD PATH [BODY]`] : []),
  ]);
  return ['Up:', ...lines, `  Logs are in ${path.join(path.relative(process.cwd(), config.dataDir) || '.', 'logs')}`];
}

/** A part of the start. `run` calls `tell` with lines that are shown below the title. */
interface Step {
  title: string;
  run(tell: (line: string) => void): Promise<void>;
}

/**
 * Runs the steps in order, until one fails. On a terminal they are an animated list; in CI or through a pipe they are
 * plain lines.
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
  // listr2 would end the process at a signal. stopOnSignal must stop all other processes first.
  await new Listr(tasks, { registerSignalListeners: false, rendererOptions: { collapseErrors: false } }).run();
}

void main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
