import fs from 'node:fs';
import path from 'node:path';
import { secretsOf } from '@drydock/service/telemetry';
import type { TestStack } from '@drydock/testing/stack';
import { Redis } from 'ioredis';
import pg from 'pg';

export interface KnownSecret {
  name: string;
  value: string;
}

/** A place that must contain no secret, with its whole text. */
export interface Place {
  name: string;
  text: string;
}

export interface Find {
  place: string;
  secret: string;
}

const shortestSecret = 12;

/**
 * Patterns of secrets whose values the test does not know. No place may contain a text that matches one of them.
 */
const forbiddenForms: Readonly<Record<string, RegExp>> = {
  'a verifier': /SCRAM-SHA-256\$\d+:/,
  'an API key': /dd_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/,
  'an internal token': /eyJ[\w-]{20,}\.eyJ[\w-]{20,}\.[\w-]{20,}/,
  'a private key': /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  'a password in a statement': /\bpassword\s+\\*'[^'?[\\]/i,
};

/**
 * Returns the forms in which a secret could be written: as it is, escaped for a URL or JSON, in base64, and in hex. If
 * the secret is itself hex, its bytes are encoded too.
 */
function formsOf(value: string): string[] {
  const bytes = [Buffer.from(value), ...(/^(?:[0-9a-f]{2}){16,}$/i.test(value) ? [Buffer.from(value, 'hex')] : [])];
  const encoded = bytes.flatMap((data) => [
    data.toString('base64').replace(/=+$/, ''),
    data.toString('base64url'),
    data.toString('hex'),
  ]);
  return [...new Set([value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), ...encoded])];
}

export function huntSecrets(places: readonly Place[], secrets: readonly KnownSecret[]): Find[] {
  const finds: Find[] = [];
  for (const { name: place, text } of places) {
    for (const { name, value } of secrets)
      if (formsOf(value).some((form) => text.includes(form))) finds.push({ place, secret: name });
    for (const [name, form] of Object.entries(forbiddenForms)) if (form.test(text)) finds.push({ place, secret: name });
  }
  return finds;
}

const read = (file: string): string => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

const variablesOf = (pid: number | string): Record<string, string> =>
  Object.fromEntries(
    read(`/proc/${pid}/environ`)
      .split('\0')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );

const secretMember = /password|secret|token|_key$|_url$|verifier/i;

/** Returns the secrets in a value at any depth: members whose name is that of a secret, and passwords in URLs. */
function secretsIn(name: string, value: unknown): KnownSecret[] {
  if (typeof value === 'string') {
    const password = URL.canParse(value) ? new URL(value).password : '';
    if (password !== '') return [{ name, value: decodeURIComponent(password) }];
    return secretMember.test(name) && !value.includes('://') ? [{ name, value }] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([member, item]) => secretsIn(`${name}.${member}`, item));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the secrets in the agents' own files. A JSON file is searched by `secretsIn`. Any other file whose name
 * contains `password` or `secret` is a secret as a whole.
 */
function secretsInFiles(dataDir: string, folders: readonly string[]): KnownSecret[] {
  return folders.flatMap((folder) => {
    const root = path.join(dataDir, folder);
    if (!fs.existsSync(root)) return [];
    const names = fs.readdirSync(root, { recursive: true, encoding: 'utf8' });
    // The files of customers are left out.
    const ours = names.filter((name) => !/\/(?:files|releases|data|current)\//.test(`/${name}/`));
    return ours.flatMap((name) => {
      if (/\.json$/.test(name)) return secretsIn(`${folder}/${name}`, jsonOf(read(path.join(root, name))));
      return /password|secret/i.test(path.basename(name))
        ? [{ name: `${folder}/${name}`, value: read(path.join(root, name)).trim() }]
        : [];
    });
  });
}

/**
 * Returns all secrets of this stack: the master key, the secrets of each process and of the demo, those that the agents
 * have generated, and those that the API has shown once.
 */
export async function knownSecrets(stack: TestStack, shownOnce: readonly KnownSecret[]): Promise<KnownSecret[]> {
  const found: KnownSecret[] = [{ name: 'master key', value: read(path.join(stack.dataDir, 'master.key')).trim() }];
  for (const [name, { pid }] of Object.entries(stack.processes()))
    for (const [index, value] of secretsOf(variablesOf(pid)).entries())
      found.push({ name: `${name}'s secret ${index + 1}`, value });
  found.push(...secretsIn('demo', stack.demo), ...secretsInFiles(stack.dataDir, ['sites', 'databases']), ...shownOnce);
  const distinct = new Map(
    found.filter(({ value }) => value.length >= shortestSecret).map((secret) => [secret.value, secret]),
  );
  return [...distinct.values()];
}

/**
 * Returns the logs, the content of the queue, every table of every service, and what other users of the machine can
 * read about the processes.
 */
export async function placesOf(stack: TestStack): Promise<Place[]> {
  const logsDir = path.join(stack.dataDir, 'logs');
  const logs = fs
    .readdirSync(logsDir)
    .map((name) => ({ name: `log of ${name}`, text: read(path.join(logsDir, name)) }));
  return [...logs, ...(await queuePlaces(stack)), ...(await tablePlaces(stack)), ...processPlaces(stack)];
}

async function queuePlaces(stack: TestStack): Promise<Place[]> {
  const url = variablesOf(stack.processes()['hosting']?.pid ?? 0)['QUEUE_URL'] ?? '';
  if (!url.startsWith('redis')) return tablesOf('queue', url);
  const redis = new Redis(url);
  try {
    const keys = await redis.keys('*');
    const texts = await Promise.all(keys.map(async (key) => `${key} ${JSON.stringify(await contentOf(redis, key))}`));
    return [{ name: 'the queue', text: texts.join('\n') }];
  } finally {
    redis.disconnect();
  }
}

async function contentOf(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  if (type === 'string') return redis.get(key);
  if (type === 'hash') return redis.hgetall(key);
  if (type === 'list') return redis.lrange(key, 0, -1);
  if (type === 'set') return redis.smembers(key);
  if (type === 'zset') return redis.zrange(key, '0', '-1');
  return type === 'stream' ? redis.xrange(key, '-', '+') : type;
}

const servicesWithTables = ['keys', 'hosting', 'compute', 'agency', 'databases'];

async function tablePlaces(stack: TestStack): Promise<Place[]> {
  const places = servicesWithTables.map((service) => {
    const url = variablesOf(stack.processes()[service]?.pid ?? 0)['DATABASE_URL'];
    if (url === undefined) throw new Error(`${service} has no database`);
    return tablesOf(service, url);
  });
  return (await Promise.all(places)).flat();
}

async function tablesOf(service: string, url: string): Promise<Place[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    if (rows.length === 0) throw new Error(`${service} has no tables`);
    const places: Place[] = [];
    for (const { name } of rows) {
      const { rows: content } = await client.query<{ row: string }>(`select to_jsonb(t)::text as row from ${name} t`);
      places.push({ name: `table ${name} of ${service}`, text: content.map(({ row }) => row).join('\n') });
    }
    return places;
  } finally {
    await client.end();
  }
}

/**
 * Returns the command lines of the stack's processes, which every user of the machine can read, and the environments of
 * customers' processes.
 */
function processPlaces(stack: TestStack): Place[] {
  const platform = new Set(
    [stack.supervisorPid, ...Object.values(stack.processes()).map(({ pid }) => pid)].map(String),
  );
  return processesOf(stack).flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
    const title = `${read(`/proc/${pid}/comm`).trim()} (${pid})`;
    return [
      { name: `command line of ${title}`, text: command },
      ...(platform.has(pid) ? [] : customersEnvironment(stack, pid, title)),
    ];
  });
}

/**
 * Returns the pids of the supervisor's descendants, and of processes that have its data folder in their arguments or
 * environment. Other processes do not count, because other tests have keys in their command lines.
 */
function processesOf(stack: TestStack): string[] {
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(pids.map((pid) => [pid, /^PPid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1]]));
  const isBelow = (pid: string | undefined): boolean =>
    pid !== undefined && (pid === String(stack.supervisorPid) || isBelow(parents.get(pid)));
  const names = (pid: string): boolean =>
    ['cmdline', 'environ'].some((file) => read(`/proc/${pid}/${file}`).includes(stack.dataDir));
  return pids.filter((pid) => isBelow(pid) || names(pid));
}

/**
 * Returns the environment of a process with a customer's code, without DATABASE_URL, which is the customer's own
 * secret. Returns nothing if no variable contains the path of the stack's data folder.
 */
function customersEnvironment(stack: TestStack, pid: string, title: string): Place[] {
  const variables = variablesOf(pid);
  const isOurs = Object.values(variables).some((value) => value.includes(stack.dataDir));
  const { DATABASE_URL: _own, ...others } = variables;
  return isOurs ? [{ name: `environment of ${title}`, text: JSON.stringify(others) }] : [];
}
