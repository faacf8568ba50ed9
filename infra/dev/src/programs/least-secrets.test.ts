import { listPrograms } from './domains';
import type { Surroundings } from './program';

/** Each secret is the label that it is derived by, so that the test can read what a process holds. */
const around: Surroundings = {
  dataDir: '/data',
  portOf: () => 1,
  adminUrl: 'postgresql://admin:superuser@127.0.0.1:1/postgres',
  sitesAdminUrl: 'postgresql://sites:superuser@127.0.0.1:1/postgres',
  sitesSocketFolder: '/data/sites-postgres/socket',
  queueUrl: 'redis://127.0.0.1:1',
  redisUrl: undefined,
  rateLimitScale: undefined,
  derive: (label) => `<${label}>`,
  common: {},
};
const programs = new Map(listPrograms(around).map(({ name, environment }) => [name, environment]));

function secretsOf(program: string): Set<string> {
  const environment = programs.get(program);
  if (environment === undefined) throw new Error(`there is no program ${program}`);
  return new Set(Object.values(environment).flatMap((value) => decodeURIComponent(value).match(/<[^>]+>/g) ?? []));
}

/** What each API shares with nobody but its worker, the gateway and keys, and what it can only look by. */
const ownSecrets = (service: string): string[] => [
  `<postgres:${service}>`,
  `<service:${service}>`,
  `<internal-token:${service}>`,
  `<audit:${service}>`,
];
const readersOf: Readonly<Record<string, string[]>> = {
  hosting: ['<site-host:reader>', '<s3-stand-in:backups:reader>', '<vendor-stand-in:live:reader>', '<vendor-stand-in:sandbox:reader>'],
  databases: ['<database-host:reader>'],
  compute: ['hetzner', 'proxmox'].flatMap((cloud) => [`<${cloud}-stand-in:live:reader>`, `<${cloud}-stand-in:sandbox:reader>`]),
};

it.each(Object.keys(readersOf))('the process that answers for %s holds its own secrets and readers’, and none that destroys', (service) => {
  expect([...secretsOf(service)].sort()).toEqual([...ownSecrets(service), ...(readersOf[service] ?? [])].sort());
});

it.each(Object.keys(readersOf))('the worker of %s holds what changes things, so that the difference above is one', (service) => {
  const worker = secretsOf(`${service}-worker`);
  expect([...secretsOf(service)].filter((secret) => secret.endsWith(':reader>')).every((secret) => !worker.has(secret))).toBe(true);
  expect([...worker].some((secret) => !ownSecrets(service).includes(secret))).toBe(true);
});

it('only a host process holds a superuser of what it hosts, and nobody the master key', () => {
  const holders = [...programs].filter(([, environment]) => Object.values(environment).some((value) => value.includes('superuser')));
  expect(holders.map(([name]) => name)).toEqual(['site-host']);
});
