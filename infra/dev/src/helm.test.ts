/**
 * @processes
 */
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { connectionsMax } from '@drydock/service/process';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { renderSecrets, secretFilesOf } from './compose';
import { inRepo } from './dev-config';
import { chartFile, renderProcesses } from './helm';
import { topology } from './topology';

const chart = inRepo('infra/helm');
const readYaml = (name: string): unknown => parse(fs.readFileSync(path.join(chart, name), 'utf8'), { merge: true });
const values = z
  .looseObject({ settings: z.record(z.string(), z.string()), outside: z.record(z.string(), z.looseObject({})) })
  .extend({ volumes: z.record(z.string(), z.looseObject({})) })
  .extend({ api: z.looseObject({ replicas: z.int() }), worker: z.looseObject({ replicas: z.int() }) })
  .parse(readYaml('values.yaml'));
const { processes } = z
  .object({
    processes: z.record(
      z.string(),
      z.object({
        role: z.enum(['api', 'worker', 'emulator']),
        env: z.record(z.string(), z.string()),
        secrets: z.record(z.string(), z.string()),
        volumes: z.array(z.object({ name: z.string() })),
        calls: z.array(z.string()),
        calledBy: z.array(z.string()),
        callsOutside: z.array(z.string()),
      }),
    ),
  })
  .parse(readYaml('processes.yaml'));
const examples = fs.readdirSync(path.join(chart, 'ci'));

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-helm-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

test('processes.yaml is what the topology makes; npm run helm writes it', () => {
  expect(fs.readFileSync(inRepo(chartFile), 'utf8')).toBe(renderProcesses());
});

test('every process is in the chart, or its address is a value; what it reads of the values is there', () => {
  const names = topology.filter(({ isEmbeddedOnly }) => isEmbeddedOnly !== true).map(({ name }) => name);
  // sites-postgres is not in the chart, because only the site agent connects to it.
  const inChart = names.filter((name) => !(name in values.outside) && name !== 'sites-postgres');
  expect(Object.keys(processes).sort()).toEqual(inChart.sort());
  for (const { env, volumes, callsOutside } of Object.values(processes)) {
    const settings = Object.values(env).flatMap((value) =>
      [...value.matchAll(/\.Values\.settings\.(\w+)/g)].map(([, name]) => name ?? ''),
    );
    expect(settings.filter((name) => !(name in values.settings))).toEqual([]);
    expect(volumes.filter(({ name }) => !(name in values.volumes))).toEqual([]);
    expect(callsOutside.filter((name) => !(name in values.outside))).toEqual([]);
  }
});

test('each secret is a file of the Secret, and none stands among the plain variables', () => {
  const files = Object.keys(JSON.parse(renderSecrets()));
  for (const [name, { secrets, env }] of Object.entries(processes)) {
    expect(secrets).toEqual(secretFilesOf(name));
    expect(Object.values(secrets).filter((file) => !files.includes(file))).toEqual([]);
    expect(Object.values(env).filter((value) => /<[^>]+>/.test(value))).toEqual([]);
  }
});

test('Postgres takes the connections of all processes, also while they are replaced, and the guide tells how many', () => {
  const counted = topology.filter(({ name, database }) => database !== undefined && name in processes);
  const isWorker = (name: string): boolean => processes[name]?.role === 'worker';
  const connectionsOf = ({ needs }: (typeof counted)[number]) => connectionsMax + (needs.includes('redis') ? 1 : 0);
  const sum = (plans: typeof counted, podsOf: (role: 'api' | 'worker') => number) =>
    plans.reduce((total, plan) => total + connectionsOf(plan) * podsOf(isWorker(plan.name) ? 'worker' : 'api'), 0);
  const ofOneEach = sum(counted, () => 1);
  const ofChart = sum(counted, (role) => values[role].replicas);
  // One more pod of each API runs while the APIs are replaced. Workers are stopped before they are replaced.
  const whileReplaced = ofChart + sum(counted, (role) => (role === 'api' ? 1 : 0));
  const guide = fs.readFileSync(inRepo('docs/guides/deploying.md'), 'utf8').replace(/\s+/g, ' ');
  expect(guide).toContain(`one process of each has ${ofOneEach}`);
  expect(guide).toContain(`The chart's defaults have ${ofChart}, and ${whileReplaced} while the APIs are replaced`);
  const [, allowed] = /max_connections=(\d+)/.exec(fs.readFileSync(inRepo('docker-compose.yml'), 'utf8')) ?? [];
  // Postgres reserves three connections for superusers. Twenty are for migrations and commands of staff.
  expect(Number(allowed)).toBeGreaterThanOrEqual(whileReplaced + 3 + 20);
  expect(guide).toContain(`\`max_connections\` to ${allowed}`);
});

test('no process is reached by one that the topology does not let call it, and only those with providers or receivers go out', () => {
  for (const [name, { calls, calledBy }] of Object.entries(processes)) {
    for (const callee of calls)
      expect([callee, processes[callee]?.calledBy]).toEqual([callee, expect.arrayContaining([name])]);
    for (const caller of calledBy)
      expect([caller, processes[caller]?.calls]).toEqual([caller, expect.arrayContaining([name])]);
  }
  const goOut = Object.keys(processes).filter((name) => processes[name]?.callsOutside.includes('internet'));
  expect(goOut).toEqual(['keys-worker', 'hosting', 'hosting-worker', 'compute', 'compute-worker']);
  expect(Object.keys(processes).filter((name) => processes[name]?.callsOutside.includes('site-host'))).toEqual([
    'hosting',
    'hosting-worker',
  ]);
  expect(processes['gateway']?.callsOutside).toEqual(['redis']);
});

/** Returns the fields that the schema refuses when `given` replaces values of the chart. */
function refusalsOf(given: Record<string, unknown>): string[] {
  const schema = z.fromJSONSchema(JSON.parse(fs.readFileSync(path.join(chart, 'values.schema.json'), 'utf8')));
  const result = schema.safeParse({ ...values, ...given });
  return result.success ? [] : result.error.issues.map((issue) => issue.path.join('.'));
}

test('values.schema.json takes the examples, and refuses what is misspelt, of a wrong type, or without the hosts’ addresses', () => {
  const outside = { ...values.outside };
  for (const name of ['site-host', 'database-host']) outside[name] = { ...outside[name], url: 'http://10.0.0.5:8080' };
  for (const given of [{}, { processes: { 'hosting-worker': { replicas: 2 } } }])
    expect(refusalsOf({ outside, ...given })).toEqual([]);
  expect(refusalsOf({}).sort()).toEqual(['outside.database-host.url', 'outside.site-host.url']);
  const wrong: Record<string, unknown>[] = [
    { setting: {} },
    { workersPaused: 'yes' },
    { processes: { keys: { replica: 2 } } },
    { processes: { keys: { env: { WORKFLOW_CONCURRENCY: 8 } } } },
    { settings: { ...values.settings, ARCHIVE_KEY: 'a' } },
    { image: { digest: 'latest' } },
  ];
  expect(wrong.map((given) => refusalsOf({ outside, ...given }).length)).toEqual(wrong.map(() => 1));
});

// .ci/fetch-helm installs both helm and the types of Kubernetes.
const tools = process.env['DRYDOCK_HELM'] ?? '/var/cache/drydock-helm';
const helm = path.join(tools, 'helm');
const itWith =
  fs.existsSync(helm) && fs.existsSync(path.join(tools, 'node_modules/kubernetes-models')) ? test : test.skip;

const manifestSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({}),
});
const run = promisify(execFile);
async function render(...args: string[]): Promise<z.infer<typeof manifestSchema>[]> {
  const { stdout } = await run(helm, ['template', 'drydock', chart, '--namespace', 'drydock', ...args], {
    maxBuffer: 16_777_216,
  });
  return parseAllDocuments(stdout, { version: '1.1' }).flatMap((document) => {
    const value: unknown = document.toJS();
    return value === null ? [] : [manifestSchema.parse(value)];
  });
}
const example = (name: string): string[] => ['--values', path.join(chart, 'ci', name)];

describe.each(examples)('%s', (name) => {
  itWith(
    'is linted by helm; every manifest has the fields, types and values of Kubernetes, and no other field',
    async () => {
      await run(helm, ['lint', '--strict', chart, ...example(name)]);
      const manifests = await render(...example(name));
      expect(manifests.length).toBeGreaterThan(40);
      // No package has the types of the Prometheus operator, so PodMonitor is not checked.
      const known = manifests.filter(({ kind }) => kind !== 'PodMonitor');
      const moduleOf = ({ apiVersion, kind }: { apiVersion: string; kind: string }) =>
        `${apiVersion.startsWith('keda.sh/') ? '@kubernetes-models/keda' : 'kubernetes-models'}/${apiVersion}/${kind}`;
      const kinds = new Map(known.map((manifest) => [manifest.kind, moduleOf(manifest)]));
      const imports = [...kinds].map(([kind, from]) => `import { ${kind}, type I${kind} } from '${from}';`);
      const made = known.map(
        (manifest, at) =>
          `const made${at}: I${manifest.kind} = ${JSON.stringify(manifest)};\nnew ${manifest.kind}(made${at}).validate();`,
      );
      const place = fs.mkdtempSync(path.join(folder, 'manifests-'));
      fs.symlinkSync(path.join(tools, 'node_modules'), path.join(place, 'node_modules'));
      fs.writeFileSync(path.join(place, 'package.json'), '{"type": "module"}');
      fs.writeFileSync(
        path.join(place, 'manifests.ts'),
        [...imports, ...made, `process.stdout.write('${known.length} valid');`].join('\n'),
      );
      const options = ['--module', 'nodenext', '--target', 'es2022', '--skipLibCheck', '--strict', '--types', 'node'];
      const types = ['--typeRoots', inRepo('node_modules/@types')];
      await run(inRepo('node_modules/.bin/tsc'), [...options, ...types, 'manifests.ts'], { cwd: place });
      expect(execFileSync(process.execPath, ['manifests.js'], { cwd: place, encoding: 'utf8' })).toBe(
        `${known.length} valid`,
      );
    },
  );
});

const containerSchema = z.looseObject({
  name: z.string(),
  image: z.string(),
  securityContext: z.looseObject({}),
  env: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
});
const podSchema = z.looseObject({
  automountServiceAccountToken: z.boolean(),
  terminationGracePeriodSeconds: z.number().optional(),
  securityContext: z.looseObject({}),
  containers: z.array(containerSchema),
  initContainers: z.array(containerSchema).default([]),
});
const workloadSchema = z.looseObject({
  strategy: z.looseObject({ type: z.string() }).optional(),
  template: z.object({ spec: podSchema }),
});

itWith(
  'every process has a deployment, a service and a policy; no container is root, writes its root or may gain rights',
  async () => {
    const manifests = await render(...example('least-values.yaml'));
    const named = (kind: string) => manifests.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);
    const names = Object.keys(processes).sort();
    expect(named('Deployment').sort()).toEqual(names);
    expect(named('Service').sort()).toEqual(names);
    expect(named('NetworkPolicy').sort()).toEqual([...names, 'migrate'].sort());
    expect(named('PodDisruptionBudget').sort()).toEqual(names.filter((name) => processes[name]?.role !== 'emulator'));
    for (const { kind, metadata, spec } of manifests.filter((each) => ['Deployment', 'Job'].includes(each.kind))) {
      const { strategy, template } = workloadSchema.parse(spec);
      const { automountServiceAccountToken, securityContext, containers, initContainers } = template.spec;
      expect([automountServiceAccountToken, securityContext]).toEqual([
        false,
        expect.objectContaining({ runAsNonRoot: true, runAsUser: 1_000 }),
      ]);
      for (const container of [...containers, ...initContainers]) {
        const hardened = {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        };
        expect(container.securityContext).toEqual(hardened);
      }
      if (kind === 'Deployment')
        expect([metadata.name, strategy?.type]).toEqual([
          metadata.name,
          processes[metadata.name]?.role === 'api' ? 'RollingUpdate' : 'Recreate',
        ]);
    }
  },
);

itWith('a process gets the variables that docker-compose.yml gives it, and its own files of the Secret', async () => {
  const compose = z
    .object({
      services: z.record(z.string(), z.looseObject({ environment: z.record(z.string(), z.string()).optional() })),
    })
    .parse(parse(fs.readFileSync(inRepo('docker-compose.yml'), 'utf8'), { merge: true, maxAliasCount: -1 })).services;
  const deployments = (await render(...example('least-values.yaml'))).filter(({ kind }) => kind === 'Deployment');
  for (const { metadata, spec } of deployments) {
    const env = Object.fromEntries(
      workloadSchema
        .parse(spec)
        .template.spec.containers.flatMap((each) => each.env.map(({ name, value }) => [name, value])),
    );
    const wanted = Object.entries(compose[metadata.name]?.environment ?? {}).map(([name, value]) => [
      name,
      value.replace(/\$\{\w+:-([^}]*)\}/, '$1'),
    ]);
    const moved: Record<string, string> = {
      SITE_HOST_URL: 'http://10.0.0.5:8080',
      DATABASE_HOST_URL: 'http://10.0.0.6:8080',
    };
    // A gateway drains longer than the other APIs, because it waits until its clients have called again.
    if (metadata.name === 'gateway') moved['DRAIN_SECONDS'] = '40';
    const given = Object.fromEntries(
      wanted.filter(([name, value]) => value !== '' && name !== 'OTEL_EXPORTER_PROMETHEUS_HOST'),
    );
    for (const [name, value] of Object.entries(moved)) if (name in given) given[name] = value;
    expect([metadata.name, env]).toEqual([metadata.name, given]);
  }
});

itWith('a pod has the time to drain, and then to finish what is under way', async () => {
  const manifests = await render(
    ...example('least-values.yaml'),
    '--set-string',
    'settings.DRAIN_SECONDS=20,settings.GATEWAY_DRAIN_SECONDS=50',
  );
  for (const { metadata, spec } of manifests.filter(({ kind }) => kind === 'Deployment')) {
    const { terminationGracePeriodSeconds, containers } = workloadSchema.parse(spec).template.spec;
    const given = containers.flatMap(({ env }) =>
      env.filter(({ name }) => name === 'DRAIN_SECONDS').map(({ value }) => value),
    );
    const isApi = processes[metadata.name]?.role === 'api';
    const seconds = metadata.name === 'gateway' ? 50 : 20;
    expect([metadata.name, terminationGracePeriodSeconds, given]).toEqual([
      metadata.name,
      40 + seconds,
      isApi ? [String(seconds)] : [],
    ]);
  }
});

itWith(
  'workersPaused stops every worker, scaled by KEDA or not; an unknown process and a secret among variables are refused',
  async () => {
    const manifests = await render(...example('everything-values.yaml'), '--set', 'workersPaused=true');
    const replicas = manifests
      .filter(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-worker'))
      .map(({ spec }) => spec['replicas']);
    expect(replicas).toEqual([0, 0, 0, 0]);
    expect(manifests.filter(({ kind }) => kind === 'ScaledObject')).toEqual([]);
    await expect(render(...example('least-values.yaml'), '--set', 'processes.kyes.replicas=2')).rejects.toThrow(
      'there is no such process',
    );
    await expect(
      render(...example('least-values.yaml'), '--set', 'processes.keys.env.SERVICE_SECRET=a'),
    ).rejects.toThrow('a secret is no variable');
  },
);

itWith('workers with a queue are scaled by the backlog that they report', async () => {
  const scaled = (await render(...example('everything-values.yaml'))).filter(({ kind }) => kind === 'ScaledObject');
  expect(scaled.map(({ metadata }) => metadata.name)).toEqual(['compute-worker', 'databases-worker', 'hosting-worker']);
  const metric = /workflow_unfinished\{process="([a-z-]+)"/;
  expect(scaled.map(({ spec }) => metric.exec(JSON.stringify(spec).replaceAll('\\"', '"'))?.[1])).toEqual(
    scaled.map(({ metadata }) => metadata.name),
  );
  expect(fs.readFileSync(inRepo('packages/workflow/src/store/telemetry.ts'), 'utf8')).toContain(
    `createObservableGauge('workflow.unfinished'`,
  );
});
