import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findProgram } from '@drydock/process';
import { apiFields, shutdownLimitMs } from '@drydock/service/process';
import { parse } from 'yaml';
import { composeFiles, networksOf, renderCompose, renderSecrets } from './compose';
import { inRepo } from './dev-config';
import type { ProcessPlan } from './process-plan';
import { topology } from './topology';

const containers = topology.filter(({ isEmbeddedOnly }) => isEmbeddedOnly !== true);
const networksIn = (name: string): string[] => containers.filter((plan) => plan.name === name).flatMap(networksOf);
const inNetwork = (network: ProcessPlan['network']): string[] =>
  containers.filter((plan) => networksOf(plan).includes(network)).map(({ name }) => name);

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-compose-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

test.each([...composeFiles.keys()])('%s is what the topology makes; npm run compose writes it', (file) => {
  expect(fs.readFileSync(inRepo(file), 'utf8')).toBe(composeFiles.get(file)?.());
});

test('what customers reach has no way to our databases, and customers’ sites and databases reach their own service alone', () => {
  expect(inNetwork('front')).toEqual(['gateway']);
  expect(networksIn('gateway')).toEqual(['control', 'front', 'queue']);
  expect(inNetwork('sites')).toEqual(['sites-postgres', 'site-host', 'hosting', 'hosting-worker']);
  expect(inNetwork('managed')).toEqual(['database-host', 'databases', 'databases-worker']);
  for (const host of ['site-host', 'database-host', 'sites-postgres', 'postgres', 'redis'])
    expect(networksIn(host)).toHaveLength(1);
});

test('no secret is an environment variable or stands in the file: each is a file that the container is given', () => {
  const text = renderCompose();
  expect(text).not.toMatch(/<(?:rotated |fingerprint )?[a-z0-9-]+(?::[a-z:-]+)?>/);
  const containersPart = text.slice(0, text.indexOf('\nsecrets:'));
  expect(containersPart).not.toMatch(
    /(?:SECRET|PASSWORD|TOKEN|_KEY|TOKENS|DATABASE_URL|QUEUE_URL|REDIS_URL|TARGETS): /,
  );
  const files = [...text.matchAll(/file: \.\/infra\/docker\/secrets\/(\S+)/g)].map(([, name]) => name);
  expect(files).toEqual(Object.keys(JSON.parse(renderSecrets())));
  expect(files.length).toBeGreaterThan(40);
});

test('secrets are derived again from the same master key, an operator’s own stay, and without the key nothing is touched', () => {
  const target = path.join(folder, 'secrets');
  const derive = (master: string, addresses: Record<string, string> = {}) =>
    execFileSync(process.execPath, [inRepo('infra/docker/derive-secrets.mjs'), target], {
      env: { DRYDOCK_MASTER_KEY: master, ...addresses },
      encoding: 'utf8',
      stdio: 'pipe',
    });
  const read = (name: string) => fs.readFileSync(path.join(target, name), 'utf8');
  const master = /Master key: ([0-9a-f]{64})/.exec(derive(''))?.[1] ?? '';
  const before = read('keys.DATABASE_URL');
  expect(before).toMatch(/^postgresql:\/\/keys_[0-9a-f]{8}:[0-9a-f]{64}@postgres:5432\/keys$/);
  fs.writeFileSync(path.join(target, 'hosting-worker.VENDOR_KEY'), 'mine');
  expect(() => derive('')).toThrow('another key would lock you out');
  derive(master);
  expect([read('keys.DATABASE_URL'), read('hosting-worker.VENDOR_KEY')]).toEqual([before, 'mine']);
  expect(fs.statSync(target).mode & 0o777).toBe(0o700);
  derive(master, { POSTGRES_ADDRESS: 'db.internal:6432', REDIS_ADDRESS: 'valkey.internal:6380' });
  expect(read('keys.DATABASE_URL')).toBe(before.replace('postgres:5432', 'db.internal:6432'));
  expect(read('redis.URL')).toMatch(/^redis:\/\/:[0-9a-f]{64}@valkey\.internal:6380$/);
  const theirs = 'postgresql://root:theirs@db.internal:5432/postgres';
  derive(master, { ADMIN_DATABASE_URL: theirs });
  expect(read('create-databases.ADMIN_DATABASE_URL')).toBe(theirs);
});

test('a rotation with the master key alone keeps the addresses and the superuser that an earlier run was given', () => {
  const target = path.join(folder, 'kept');
  const derive = (environment: Record<string, string>): void => {
    const script = inRepo('infra/docker/derive-secrets.mjs');
    execFileSync(process.execPath, [script, target], { env: environment, encoding: 'utf8', stdio: 'pipe' });
  };
  const read = (name: string) => fs.readFileSync(path.join(target, name), 'utf8');
  const superuser = () => read('create-databases.ADMIN_DATABASE_URL');
  const [old, other] = ['a1'.repeat(32), 'b2'.repeat(32)];
  const outside = { POSTGRES_ADDRESS: 'db.internal:6432', REDIS_ADDRESS: 'valkey.internal:6380' };
  derive({ DRYDOCK_MASTER_KEY: old, ...outside });
  for (const key of [`${old},${other}`, `${other},${old}`, other]) {
    derive({ DRYDOCK_MASTER_KEY: key });
    for (const name of Object.keys(JSON.parse(renderSecrets())).filter((file) => file.endsWith('.DATABASE_URL')))
      expect(read(name)).toMatch(/^postgresql:\/\/[a-z]+_[0-9a-f]{8}:[0-9a-f]{64}@db\.internal:6432\/[a-z]+$/);
    expect(read('redis.URL')).toMatch(/^redis:\/\/:[0-9a-f]{64}@valkey\.internal:6380$/);
    const passwords = Array.from(key.split(','), () => '[0-9a-f]{64}').join(',');
    expect(superuser()).toMatch(new RegExp(`^postgresql://postgres:${passwords}@db\\.internal:6432/postgres$`));
  }
  const theirs = `postgresql://postgres:${'c3'.repeat(32)}@db.internal:6432/postgres`;
  derive({ DRYDOCK_MASTER_KEY: other, ADMIN_DATABASE_URL: theirs });
  for (const key of [`${other},${old}`, `${old},${other}`, old]) {
    derive({ DRYDOCK_MASTER_KEY: key });
    expect(superuser()).toBe(theirs);
  }
  derive({ DRYDOCK_MASTER_KEY: old, POSTGRES_ADDRESS: 'postgres:5432' });
  expect(read('keys.DATABASE_URL')).toContain('@postgres:5432/keys');
});

test('a container is not killed while its program may still drain and finish what is under way', () => {
  const { services } = parse(renderCompose(), { merge: true, maxAliasCount: -1 }) as {
    services: Record<string, { stop_grace_period?: string }>;
  };
  const drainSecondsMax = 300;
  const isSetting = (seconds: number) => apiFields.DRAIN_SECONDS.safeParse(seconds).success;
  expect([isSetting(drainSecondsMax), isSetting(drainSecondsMax + 1)]).toEqual([true, false]);
  const programs = containers.filter(({ run }) => 'entry' in run);
  const killedEarly = programs.filter(
    ({ name }) => !(parseInt(services[name]?.stop_grace_period ?? '', 10) > drainSecondsMax + shutdownLimitMs / 1_000),
  );
  expect([programs.length > 10, killedEarly.map(({ name }) => name)]).toEqual([true, []]);
});

test('while the master key is rotated who accepts a secret is given both, the current one first, and who uses it the current one', () => {
  const derive = (name: string, environment: Record<string, string>): ((file: string) => string) => {
    const target = path.join(folder, name);
    const script = inRepo('infra/docker/derive-secrets.mjs');
    execFileSync(process.execPath, [script, target], { env: environment, encoding: 'utf8', stdio: 'pipe' });
    return (file) => fs.readFileSync(path.join(target, file), 'utf8');
  };
  const [old, other] = ['a1'.repeat(32), 'b2'.repeat(32)];
  const [before, after] = [
    derive('before', { DRYDOCK_MASTER_KEY: old }),
    derive('after', { DRYDOCK_MASTER_KEY: other }),
  ];
  const both = derive('both', { DRYDOCK_MASTER_KEY: `${other},${old}` });
  const secret = /[0-9a-f]{64}/g;
  for (const [name, text] of Object.entries(JSON.parse(renderSecrets()))) {
    const [ofOld = [], ofOther = []] = [before(name), after(name)].map((content) => content.match(secret) ?? []);
    const isRotated = (String(text).match(/<[^>]+>/g) ?? [])
      .filter((label) => !label.startsWith('<fingerprint '))
      .map((label) => label.startsWith('<rotated '));
    const expected = isRotated.flatMap((isAccepted, at) => [ofOther[at], ...(isAccepted ? [ofOld[at]] : [])]);
    expect([name, both(name).match(secret) ?? []]).toEqual([name, expected]);
  }
  expect([both('keys.DATABASE_URL'), both('hosting-worker.ARCHIVE_KEY').length]).toEqual([
    after('keys.DATABASE_URL'),
    129,
  ]);
  expect(both('redis.REDIS_CONFIG')).toMatch(/^user default on resetpass ~\* &\* \+@all >[0-9a-f]{64} >[0-9a-f]{64}$/);
  expect(both('hetzner-stand-in.PROJECT_TOKENS')).toBe(
    `${after('hetzner-stand-in.PROJECT_TOKENS')},${before('hetzner-stand-in.PROJECT_TOKENS').slice('sandbox='.length)}`,
  );
  const audit: Record<string, string> = JSON.parse(both('keys.AUDIT_TOKEN_SECRETS'));
  expect(audit['hosting']).toBe(both('hosting.AUDIT_TOKEN_SECRET'));
});

// `docker-compose config` works without a running Docker.
const tool = findProgram(['docker-compose']);
const itWith = tool === null ? test.skip : test;
const needs = tool === null ? ' (needs docker-compose)' : '';

itWith(`docker-compose takes the file as it is, also Debian’s 1.29, and every container is limited${needs}`, () => {
  const resolved = execFileSync(tool ?? '', ['--file', inRepo('docker-compose.yml'), 'config'], { encoding: 'utf8' });
  const { services } = parse(resolved) as { services: Record<string, object> };
  expect(Object.keys(services)).toHaveLength(containers.length + 7);
  const limited = {
    mem_limit: expect.anything(),
    pids_limit: expect.anything(),
    cpus: expect.anything(),
    read_only: true,
    cap_drop: ['ALL'],
    logging: expect.objectContaining({ options: expect.objectContaining({ 'max-size': '10m' }) }),
    security_opt: expect.arrayContaining(['no-new-privileges:true']),
  };
  for (const [name, service] of Object.entries(services))
    expect([name, service]).toEqual([name, expect.objectContaining(limited)]);
});
