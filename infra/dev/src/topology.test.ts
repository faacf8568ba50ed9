import type { SecretPlace } from './place';
import { topology, withNeeds } from './topology';

/** A place whose secrets are their labels, by which the test recognises them. */
const place: SecretPlace = {
  isEmbedded: true,
  addressOf: () => '127.0.0.1:1',
  folderOf: (name) => `/data/${name}`,
  sitesSocketFolder: () => '/data/sites-postgres/socket',
  setting: (_variable, fallback = '') => fallback,
  derive: (label) => `<${label}>`,
  current: (label) => `<${label}>`,
  rotated: (label) => `<${label}>`,
  fingerprint: () => 'fingerprint',
  adminUrl: (cluster) => `postgresql://admin:superuser@127.0.0.1:1/${cluster}`,
  queueUrl: () => 'redis://127.0.0.1:1',
  redisUrl: () => undefined,
};
const ours = topology.filter(({ run }) => 'entry' in run);
const programs = new Map(
  ours.map(({ name, environment, secrets }) => [name, { ...environment?.(place), ...secrets?.(place) }]),
);

function secretsOf(program: string): Set<string> {
  const environment = programs.get(program);
  if (environment === undefined) throw new Error(`there is no program ${program}`);
  return new Set(Object.values(environment).flatMap((value) => decodeURIComponent(value).match(/<[^>]+>/g) ?? []));
}

/**
 * Returns the secrets of an API, except those for providers and agents. `readersOf` has the excepted secrets, with
 * which the API can only read.
 */
const ownSecrets = (service: string): string[] => [
  `<postgres:${service}>`,
  `<service:${service}>`,
  `<internal-token:${service}>`,
  `<audit:${service}>`,
];
const readersOf: Readonly<Record<string, string[]>> = {
  hosting: [
    '<site-host:reader>',
    '<s3-stand-in:backups:reader>',
    '<vendor-stand-in:live:reader>',
    '<vendor-stand-in:sandbox:reader>',
  ],
  databases: ['<database-host:reader>'],
  compute: ['hetzner', 'proxmox'].flatMap((cloud) => [
    `<${cloud}-stand-in:live:reader>`,
    `<${cloud}-stand-in:sandbox:reader>`,
  ]),
};

it.each(Object.keys(readersOf))(
  'the process that answers for %s holds its own secrets and readers’, and none that destroys',
  (service) => {
    expect([...secretsOf(service)].sort()).toEqual([...ownSecrets(service), ...(readersOf[service] ?? [])].sort());
  },
);

it.each(Object.keys(readersOf))(
  'the worker of %s holds what changes things, so that the difference above is one',
  (service) => {
    const worker = secretsOf(`${service}-worker`);
    expect(
      [...secretsOf(service)].filter((secret) => secret.endsWith(':reader>')).every((secret) => !worker.has(secret)),
    ).toBe(true);
    expect([...worker].some((secret) => !ownSecrets(service).includes(secret))).toBe(true);
  },
);

it('only a host process holds a superuser of what it hosts, and nobody the master key', () => {
  const holders = [...programs].filter(([, environment]) =>
    Object.values(environment).some((value) => value.includes('superuser')),
  );
  expect(holders.map(([name]) => name)).toEqual(['site-host']);
});

it('no secret is among the plain variables, which everybody who may inspect a container can read', () => {
  const plain = topology.flatMap(({ environment }) => Object.values(environment?.(place) ?? {}));
  expect(plain.length).toBeGreaterThan(30);
  expect(plain.filter((value) => /<[^>]+>|superuser/.test(value))).toEqual([]);
});

it('whoever is named in needs or calls exists, and needs have no circle', () => {
  const names = new Set(topology.map(({ name }) => name));
  expect(names.size).toBe(topology.length);
  for (const { name, needs, calls = [] } of topology) {
    expect([...needs, ...calls].filter((other) => !names.has(other))).toEqual([]);
    expect(needs.flatMap((need) => withNeeds([need]).map((plan) => plan.name))).not.toContain(name);
  }
});

it('a process is started with what it needs and nothing else', () => {
  expect(withNeeds(['keys']).map(({ name }) => name)).toEqual(['postgres', 'keys']);
  expect(withNeeds(['databases', 'keys']).map(({ name }) => name)).toEqual([
    'postgres',
    'redis',
    'database-host',
    'keys',
    'databases',
  ]);
  expect(() => withNeeds(['kyes'])).toThrow('There is no process "kyes". There are: postgres, sites-postgres, redis,');
});
