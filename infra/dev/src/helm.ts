// `npm run helm`: writes infra/helm/processes.yaml from the topology. The file tells the chart's templates the command,
// environment, secrets and callees of each process. An operator's settings (replicas, resources, addresses) are in the
// chart's values.yaml, which is written by hand.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { readCommandLine } from '@drydock/process';
import { stringify } from 'yaml';
import { migrateTool, programPort, secretFilesOf, volumesRoot } from './compose';
import { inRepo } from './dev-config';
import { type Place, readinessPath, servicesWithDatabase, type Variables } from './place';
import type { ProcessPlan } from './process-plan';
import { topology } from './topology';

/** Databases, the queue and the agents run outside of the chart. The chart gets their addresses as values. */
const isOutside = ({ run, network }: ProcessPlan): boolean =>
  'store' in run || network === 'sites' || network === 'managed';
const isInChart = (plan: ProcessPlan): boolean => plan.isEmbeddedOnly !== true && !isOutside(plan);

const inChart = topology.filter(isInChart);
const outside = topology.filter((plan) => plan.isEmbeddedOnly !== true && isOutside(plan));

/**
 * The addresses and settings for processes.yaml, some of which are Helm templates. A process in the chart has a
 * Kubernetes Service of the same name.
 */
const place: Place = {
  isEmbedded: false,
  addressOf: (name) => (outside.some((plan) => plan.name === name) ? `<${name}>` : `${name}:${programPort}`),
  folderOf: (name) => `${volumesRoot}/${name}`,
  sitesSocketFolder: () => '',
  setting: (variable) => `{{ .Values.settings.${variable} }}`,
};

/**
 * Returns the environment of a process. The URL of a process outside of the chart is a Helm value as a whole, so that
 * an operator can choose https.
 */
const environmentOf = (plan: ProcessPlan): Variables =>
  Object.fromEntries(
    Object.entries(plan.environment?.(place) ?? {}).map(([name, value]) => [
      name,
      value.replace(/http:\/\/<([a-z-]+)>/, (_match, host) => `{{ index .Values.outside "${host}" "url" }}`),
    ]),
  );

const isWorker = ({ name }: ProcessPlan): boolean => name.endsWith('-worker');
const roleOf = (plan: ProcessPlan): 'api' | 'worker' | 'emulator' =>
  plan.network === 'clouds' ? 'emulator' : isWorker(plan) ? 'worker' : 'api';

/** The processes that call the internet: receivers of webhooks, buckets, the vendor or the clouds. */
const callsInternet = new Set(['keys-worker', 'hosting', 'hosting-worker', 'compute', 'compute-worker']);

const calleesOf = ({ needs, calls = [] }: ProcessPlan): string[] => [...new Set([...needs, ...calls])];
const namesIn = (plans: readonly ProcessPlan[], names: readonly string[]): string[] =>
  plans.map(({ name }) => name).filter((name) => names.includes(name));

function entryOf(plan: ProcessPlan) {
  if (!('entry' in plan.run)) throw new Error(`${plan.name} is no program of ours`);
  const { run, memoryMb, volumes = [] } = plan;
  return {
    role: roleOf(plan),
    args: [...(run.flags ?? []), run.entry],
    memory: `${memoryMb}Mi`,
    // Only a worker with a queue has the metric of waiting work, by which KEDA scales.
    hasQueue: isWorker(plan) && plan.needs.includes('redis'),
    env: environmentOf(plan),
    secrets: secretFilesOf(plan.name),
    volumes: volumes.map((mount) => ({ name: mount.replace(/:ro$/, ''), readOnly: mount.endsWith(':ro') })),
    calledBy: inChart.filter((other) => calleesOf(other).includes(plan.name)).map(({ name }) => name),
    calls: namesIn(inChart, calleesOf(plan)),
    callsOutside: [...namesIn(outside, calleesOf(plan)), ...(callsInternet.has(plan.name) ? ['internet'] : [])],
  };
}

export function renderProcesses(): string {
  const migrations = Object.fromEntries([
    ['create-databases', { args: [migrateTool, 'databases'], secrets: secretFilesOf('create-databases') }],
    ...servicesWithDatabase.map((service): [string, object] => [
      `migrate-${service}`,
      { args: [migrateTool, 'deploy', `services/${service}`], secrets: secretFilesOf(`migrate-${service}`) },
    ]),
  ]);
  const content = {
    port: programPort,
    livenessPath: '/healthz',
    readinessPath,
    volumesRoot,
    processes: Object.fromEntries(inChart.map((plan) => [plan.name, entryOf(plan)])),
    migrations,
  };
  const head =
    '# Made from infra/dev/src/topology.ts by `npm run helm`; do not edit. What you may choose is in values.yaml.';
  return `${head}\n${stringify(content, { lineWidth: 0 })}`;
}

export const chartFile = 'infra/helm/processes.yaml';

/**
 * Writes the file if it differs from the topology. With `--check` it changes nothing, and fails if the file differs.
 */
function main(isCheck: boolean): number {
  const file = inRepo(chartFile);
  const isStale = !existsSync(file) || readFileSync(file, 'utf8') !== renderProcesses();
  if (isStale && !isCheck) writeFileSync(file, renderProcesses());
  if (isStale && isCheck) process.stderr.write(`Not what the topology makes: ${chartFile}. Run: npm run helm\n`);
  return isStale && isCheck ? 1 : 0;
}

if (require.main === module)
  process.exitCode = main(
    readCommandLine('npm run helm [-- --check]   writes the file anew; with --check it only compares', {
      options: { check: { type: 'boolean', default: false } },
    }).values.check,
  );
