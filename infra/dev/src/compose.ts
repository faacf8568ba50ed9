// `npm run compose`: writes docker-compose.yml and infra/docker/secrets.json from the topology.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { readCommandLine } from '@drydock/process';
import { wrap, yaml } from './compose-yaml';
import { inRepo } from './dev-config';
import {
  createDatabasesSecrets,
  databaseUrl,
  hostingEnvironment,
  type SecretPlace,
  type ServiceWithDatabase,
  serviceSecrets,
  servicesWithDatabase,
  urlOf,
  type Variables,
} from './place';
import type { Network, ProcessPlan } from './process-plan';
import { topology } from './topology';

const sitesSettings = 'listen_addresses=127.0.0.1 hba_file=/etc/postgresql/pg_hba.conf max_locks_per_transaction=800';
const quietLog = 'log_min_error_statement=panic log_error_verbosity=terse';
const storePorts: Readonly<Record<string, number>> = { postgres: 5432, 'sites-postgres': 5432, redis: 6379 };

/** Containers reach each other by name, so every program of Drydock can listen on the same port. */
export const programPort = 8080;
export const volumesRoot = '/var/lib/drydock';
/** The uid and gid of the image's user `node`, to which the volumes of Drydock's programs belong. */
const imageUser = '1000:1000';

/**
 * The values for docker-compose.yml. Each secret is a placeholder: a label in angle brackets. A text with placeholders
 * is called a template. The script infra/docker/derive-secrets.mjs replaces each placeholder by the secret that it
 * derives from the label.
 */
const place: SecretPlace = {
  isEmbedded: false,
  addressOf: (name) => `${name}:${storePorts[name] ?? programPort}`,
  folderOf: (name) => `${volumesRoot}/${name}`,
  sitesSocketFolder: () => '/var/run/sites-postgres',
  setting: (variable, fallback = '') => `\${${variable}:-${fallback}}`,
  derive: (label) => `<${label}>`,
  current: (label) => `<${label}>`,
  rotated: (label) => `<rotated ${label}>`,
  fingerprint: (label) => `<fingerprint ${label}>`,
  adminUrl: (cluster) =>
    `postgresql://postgres:<rotated postgres:${cluster === 'postgres' ? 'admin' : 'sites'}>@${cluster}:5432/postgres`,
  queueUrl: () => 'redis://:<redis>@redis:6379',
  redisUrl: () => place.queueUrl(),
};

const plans = topology.filter(({ isEmbeddedOnly }) => isEmbeddedOnly !== true);
const planOf = (name: string): ProcessPlan | undefined => plans.find((plan) => plan.name === name);
const volumeOf = (mount: string): string => mount.replace(/:ro$/, '');
const programVolumes = [...new Set(plans.flatMap(({ volumes = [] }) => volumes.map(volumeOf)))];

/** The templates of each container's secrets, by variable. The template of a secret from the operator is empty. */
const secretsOf: ReadonlyMap<string, Variables> = new Map<string, Variables>([
  ...plans.map(({ name, secrets }): [string, Variables] => [name, secrets?.(place) ?? {}]),
  ...servicesWithDatabase.map((service): [string, Variables] => [
    `migrate-${service}`,
    { DATABASE_URL: databaseUrl(place, service) },
  ]),
  ['create-databases', createDatabasesSecrets(place)],
]);

/** The name of each secret's file, by template. Containers with the same template share one file. */
const secretFiles = new Map<string, string>([[place.queueUrl(), 'redis.URL']]);
for (const [container, variables] of secretsOf) {
  for (const [variable, template] of Object.entries(variables)) {
    const key = keyOf(container, variable, template);
    if (!secretFiles.has(key)) secretFiles.set(key, `${container}.${variable}`);
  }
}

/**
 * Returns the key of a secret in {@link secretFiles}: its template. Secrets from the operator all have the empty
 * template, so container and variable are the key instead.
 */
function keyOf(container: string, variable: string, template: string): string {
  return template === '' ? `${container}.${variable}` : template;
}

/** Returns the variables of a container that are secrets, each with the name of its file in infra/docker/secrets. */
export const secretFilesOf = (container: string): Variables =>
  Object.fromEntries(
    Object.entries(secretsOf.get(container) ?? {}).map(([variable, template]) => [
      variable,
      secretFiles.get(keyOf(container, variable, template)) ?? '',
    ]),
  );

function givenSecrets(container: string) {
  const files = Object.entries(secretFilesOf(container));
  return files.length === 0 ? {} : { secrets: files.map(([target, source]) => ({ source, target })) };
}

/** Returns a variable `NAME_FILE` for each secret: the path of the file from which the container reads the secret. */
const fileVariables = (container: string): Variables => filesOf(Object.keys(secretsOf.get(container) ?? {}));

function filesOf(names: readonly string[]): Variables {
  return Object.fromEntries(names.map((name) => [`${name}_FILE`, `/run/secrets/${name}`]));
}

/** Returns the networks of a container: its own, and those of the containers that it needs or calls. */
export function networksOf({ network, needs, calls = [] }: ProcessPlan): Network[] {
  return [...new Set([network, ...[...needs, ...calls].flatMap((name) => planOf(name)?.network ?? [])])].sort();
}

/** The limits of a container, unless its plan has other limits. */
const usualLimits = { mem_limit: '512m', cpus: 1, cpu_shares: 1_024, pids_limit: 512 };

const isOfCustomers = ({ network }: ProcessPlan): boolean => network === 'sites' || network === 'managed';
/** Customers' code gets less CPU than the control plane when the machine is busy. */
const customersLimits = { cpus: 2, cpu_shares: 256, pids_limit: 8_192 };

/** Returns the limits that differ from {@link usualLimits}. A container with a gigabyte or more may use two cores. */
function limitsOf(plan: ProcessPlan, base: 'program' | 'store') {
  const { memoryMb } = plan;
  return {
    '<<': isOfCustomers(plan) ? `[*customers, *${base}]` : `*${base}`,
    ...(memoryMb === 512 ? {} : { mem_limit: `${memoryMb}m` }),
    ...(memoryMb < 1_024 || isOfCustomers(plan) ? {} : { cpus: 2 }),
  };
}

const completed = '*completed';
const healthy = '*healthy';

function startsAfter({ needs, database, volumes = [] }: ProcessPlan) {
  const conditions = {
    ...(volumes.length === 0 ? {} : { 'prepare-volumes': completed }),
    // `postgres` is not listed, because the migration itself waits for Postgres.
    ...(database === undefined ? {} : { [`migrate-${database}`]: completed }),
    ...Object.fromEntries(
      needs.filter((name) => planOf(name) !== undefined && name !== 'postgres').map((name) => [name, healthy]),
    ),
  };
  return Object.keys(conditions).length === 0 ? {} : { depends_on: conditions };
}

/**
 * The variables that all programs share. Below are those of three smaller groups: services, services with a queue, and
 * hosting. In docker-compose.yml each group also has the variables of the groups before it.
 */
const common: Variables = {
  HOST: '0.0.0.0',
  PORT: String(programPort),
  LOG_LEVEL: place.setting('LOG_LEVEL', 'info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: place.setting('OTEL_EXPORTER_OTLP_ENDPOINT'),
  OTEL_RESOURCE_ATTRIBUTES: place.setting('OTEL_RESOURCE_ATTRIBUTES'),
  TRACE_READS: place.setting('TRACE_READS'),
  TRACE_SLOW_MS: place.setting('TRACE_SLOW_MS'),
  TRACE_DETAIL: place.setting('TRACE_DETAIL'),
  OTEL_EXPORTER_PROMETHEUS_PORT: place.setting('OTEL_EXPORTER_PROMETHEUS_PORT'),
  OTEL_EXPORTER_PROMETHEUS_HOST: '0.0.0.0',
};
const ofService: Variables = { KEYS_URL: urlOf(place, 'keys'), ...filesOf(Object.keys(serviceSecrets('keys', place))) };
const ofQueued: Variables = filesOf(['QUEUE_URL']);
const ofHosting: Variables = without({ ...ofService, ...ofQueued }, hostingEnvironment(place));

/** Returns the environment of a container: a YAML merge of its group, and the variables that the group lacks. */
function mergedWith({ name, database, needs }: ProcessPlan, variables: Variables): Variables {
  // keys-worker has a database but not the secrets of a service, because it only sends webhooks.
  if (database === undefined || !('SERVICE_SECRET_FILE' in variables)) return { '<<': '*common', ...variables };
  if (!needs.includes('redis')) return { '<<': '*service', ...without(ofService, variables, name) };
  const queued = { ...ofService, ...ofQueued };
  if (database !== 'hosting') return { '<<': '*queued', ...without(queued, variables, name) };
  return { '<<': '*hosting', ...without({ ...queued, ...ofHosting }, variables, name) };
}

/**
 * Returns the variables that the group lacks. @throws if `container` is given and `variables` lacks a variable of the
 * group or has another value for it: the YAML merge would set the group's value
 */
function without(group: Variables, variables: Variables, container?: string): Variables {
  const added = Object.keys(group).filter((name) => variables[name] !== group[name]);
  if (container !== undefined && added.length > 0)
    throw new Error(`${container} is not to be given ${added.join(', ')}`);
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in group)));
}

function programOf(plan: ProcessPlan, run: { flags?: readonly string[]; entry: string }) {
  const { name, environment, volumes = [], makesBoxes } = plan;
  const mounts = volumes.map(
    (mount) => `${volumeOf(mount)}:${place.folderOf(volumeOf(mount))}${mount.endsWith(':ro') ? ':ro' : ''}`,
  );
  if (name === 'site-host') mounts.push(`sites-socket:${place.sitesSocketFolder()}`);
  return {
    ...limitsOf(plan, 'program'),
    command: [...(run.flags ?? []), run.entry],
    ...(makesBoxes === true ? { security_opt: '*boxes' } : {}),
    environment: mergedWith(plan, { SERVICE_NAME: name, ...environment?.(place), ...fileVariables(name) }),
    ...givenSecrets(name),
    ...(mounts.length === 0 ? {} : { volumes: mounts }),
    networks: networksOf(plan),
    ...(name === 'gateway' ? { ports: [`127.0.0.1:\${DRYDOCK_PORT:-8080}:${programPort}`] } : {}),
    ...startsAfter(plan),
  };
}

function storeOf(plan: ProcessPlan) {
  const { name } = plan;
  const base = { ...limitsOf(plan, 'store'), ...givenSecrets(name), networks: networksOf(plan) };
  if (name === 'redis') {
    // While the master key is rotated, REDIS_CONFIG has two passwords. The health check uses the first.
    const ping = `REDISCLI_AUTH=$$(cut -d'>' -f2 /run/secrets/REDIS_CONFIG | tr -d ' ') valkey-cli ping | grep -q PONG`;
    return {
      ...base,
      image: 'valkey/valkey:8-bookworm',
      command: [
        'valkey-server',
        '/run/secrets/REDIS_CONFIG',
        '--appendonly',
        'yes',
        '--maxmemory-policy',
        'noeviction',
      ],
      tmpfs: ['/tmp:size=16m'],
      volumes: ['redis:/data'],
      healthcheck: { '<<': '*health', test: ['CMD-SHELL', ping] },
    };
  }
  const isOfSites = name === 'sites-postgres';
  const ofSites = {
    // The limit in bytes for the private memory of one session. A statement that builds a value of a gigabyte then
    // fails early instead of keeping two cores busy.
    ulimits: { data: 536_870_912 },
    // The server listens only on the loopback address, for the health check, because customers' applications could
    // reach any other address. The site agent connects through the socket. A backup locks all tables of a site at once,
    // so 80,000 locks are allowed: 800 for each of 100 connections. Failed statements are not logged, because an ALTER
    // ROLE contains a password.
    command: ['postgres', ...`${sitesSettings} ${quietLog}`.split(' ').flatMap((setting) => ['-c', setting])],
  };
  return {
    ...base,
    image: 'postgres:17-bookworm',
    shm_size: '256m',
    tmpfs: ['/tmp:size=64m', ...(isOfSites ? [] : ['/var/run/postgresql:size=1m,mode=3777'])],
    // helm.test.ts checks that the connections of all processes fit into this number.
    ...(isOfSites ? ofSites : { command: ['postgres', '-c', 'max_connections=300'] }),
    environment: {
      POSTGRES_USER: 'postgres',
      POSTGRES_INITDB_ARGS: `--auth-host=scram-sha-256${isOfSites ? '' : ' --auth-local=scram-sha-256'}`,
      ...fileVariables(name),
    },
    volumes: [
      `${name}:/var/lib/postgresql/data`,
      ...(isOfSites
        ? ['sites-socket:/var/run/postgresql', './infra/postgres/sites-pg_hba.conf:/etc/postgresql/pg_hba.conf:ro']
        : []),
    ],
    healthcheck: { '<<': '*health', test: ['CMD', 'pg_isready', '--username', 'postgres', '--host', '127.0.0.1'] },
  };
}

export const migrateTool = 'packages/postgres/dist/migrate/cli.js';

const migrationOf = (service: ServiceWithDatabase) => ({
  '<<': '*migration',
  entrypoint: ['node', migrateTool, 'deploy', `services/${service}`],
  ...givenSecrets(`migrate-${service}`),
});

/** The containers that run to their end before each start. To run them again does no harm. */
const jobs = {
  // New volumes belong to root. This job gives them to the user of Drydock's programs.
  'prepare-volumes': {
    '<<': '*job',
    user: '0:0',
    cap_add: ['CHOWN'],
    network_mode: 'none',
    entrypoint: ['chown', imageUser, ...programVolumes.map((name) => place.folderOf(name))],
    volumes: programVolumes.map((name) => `${name}:${place.folderOf(name)}`),
  },
  // This job creates missing roles and databases and sets all passwords, also on a cluster that has data.
  'create-databases': {
    '<<': '*job',
    entrypoint: ['node', migrateTool, 'databases'],
    environment: fileVariables('create-databases'),
    ...givenSecrets('create-databases'),
    networks: ['data'],
    depends_on: { postgres: healthy },
  },
  ...Object.fromEntries(servicesWithDatabase.map((service) => [`migrate-${service}`, migrationOf(service)])),
};

const unprivileged = 'no-new-privileges:true';
/** The parts that several containers share, by the name of their YAML anchor. */
const anchors = {
  // The size of logs is limited, because an endless log would fill the disk of the databases.
  logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
  health: { interval: '2s', timeout: '3s', retries: 30 },
  healthy: { condition: 'service_healthy' },
  completed: { condition: 'service_completed_successfully' },
  image: {
    image: 'drydock',
    build: { context: '.', dockerfile: 'infra/docker/Dockerfile' },
    init: true,
    read_only: true,
    tmpfs: ['/tmp:size=64m,mode=1777'],
    security_opt: [unprivileged],
    cap_drop: ['ALL'],
    logging: '*logging',
  },
  // The gateway and the APIs first drain, for at most 300 s. Then every program has 25 s for work in progress.
  program: { '<<': '*image', restart: 'unless-stopped', stop_grace_period: '340s', ...usualLimits },
  job: { '<<': '*image', restart: 'no', mem_limit: '256m', cpus: 1, pids_limit: 128, healthcheck: { disable: true } },
  migration: {
    '<<': '*job',
    environment: filesOf(['DATABASE_URL']),
    networks: ['data'],
    depends_on: { 'create-databases': completed },
  },
  // The images of Postgres and Valkey start as root, give the volume to a user of their own, and then run as that user.
  store: {
    restart: 'unless-stopped',
    stop_grace_period: '60s',
    ...usualLimits,
    read_only: true,
    security_opt: [unprivileged],
    cap_drop: ['ALL'],
    cap_add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
    logging: '*logging',
  },
  customers: customersLimits,
  // Docker's default profiles forbid the user namespaces and mounts that isolate customers' code.
  boxes: [unprivileged, 'seccomp=unconfined', 'apparmor=unconfined', 'systempaths=unconfined'],
  common,
  service: { '<<': '*common', ...ofService },
  queued: { '<<': '*service', ...ofQueued },
  hosting: { '<<': '*queued', ...ofHosting },
};

export function renderCompose(): string {
  const services = {
    ...jobs,
    ...Object.fromEntries(
      plans.map((plan) => [plan.name, 'entry' in plan.run ? programOf(plan, plan.run) : storeOf(plan)]),
    ),
  };
  // The networks `data` and `queue` have no route to the outside of the machine.
  const networks = Object.fromEntries(
    [...new Set(plans.flatMap(networksOf))]
      .sort()
      .map((name) => [name, name === 'data' || name === 'queue' ? { internal: true } : {}]),
  );
  const volumes = ['postgres', 'sites-postgres', 'sites-socket', 'redis', ...programVolumes];
  const secrets = [...secretFiles.values()].map((name): [string, object] => [
    name,
    { file: `./infra/docker/secrets/${name}` },
  ]);
  const shared = Object.entries(anchors).map(([name, value]) => `x-${name}: &${name}${yaml(value, 1)}\n`);
  const short = shared.filter((text) => text.split('\n').length === 2);
  const long = shared.filter((text) => !short.includes(text));
  const sections = [
    '# Drydock with each process in its own container. Made from infra/dev/src/topology.ts by `npm run compose`; do not edit.\n' +
      '# How to run it: docs/guides/deploying.md.\n',
    short.join(''),
    ...long,
    ...Object.entries(services).map(
      ([name, value], at) => `${at === 0 ? 'services:\n' : ''}  ${name}:${yaml(value, 2)}\n`,
    ),
    `networks:${yaml(networks, 1)}\n`,
    `volumes: {${wrap(
      volumes.map((name) => `${name}: {}`),
      '  ',
    )} }\n`,
    `secrets:${yaml(Object.fromEntries(secrets), 1)}\n`,
  ];
  return sections.join('\n');
}

/** Renders the template of each secret's file, by the name of the file. A secret from the operator has no template. */
export const renderSecrets = (): string =>
  `${JSON.stringify(Object.fromEntries([...secretFiles].map(([key, name]) => [name, key === name ? '' : key])), null, 2)}\n`;

export const composeFiles: ReadonlyMap<string, () => string> = new Map([
  ['docker-compose.yml', renderCompose],
  ['infra/docker/secrets.json', renderSecrets],
]);

/** Writes the files that differ from the topology. With `--check` it changes nothing, and fails if a file differs. */
function main(isCheck: boolean): number {
  const stale = [...composeFiles].filter(
    ([file, render]) => !existsSync(inRepo(file)) || readFileSync(inRepo(file), 'utf8') !== render(),
  );
  if (!isCheck) for (const [file, render] of stale) writeFileSync(inRepo(file), render());
  else if (stale.length > 0)
    process.stderr.write(
      `Not what the topology makes: ${stale.map(([file]) => file).join(', ')}. Run: npm run compose\n`,
    );
  return isCheck && stale.length > 0 ? 1 : 0;
}

if (require.main === module)
  process.exitCode = main(
    readCommandLine('npm run compose [-- --check]   writes the file anew; with --check it only compares', {
      options: { check: { type: 'boolean', default: false } },
    }).values.check,
  );
