import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type CallOptions, createDrydock, type Drydock } from '@drydock/client';
import type { Command } from 'commander';
import { UsageError } from './exit';
import type { OperationId } from './generated/contract';
import type { Input } from './operation';
import { clean, type Format, isObject, print, tableOf } from './output';
import { ask, canAsk, readStdin, tell } from './terminal';

interface Config {
  /** The values of DRYDOCK_URL and DRYDOCK_KEY. They take precedence over the current context. */
  url: string | undefined;
  key: string | undefined;
  /** The folder of the contexts, by the XDG base directory specification. */
  folder: string;
}

function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = env['XDG_CONFIG_HOME'] ?? '';
  // The XDG specification says that a relative path is ignored.
  const base = path.isAbsolute(given) ? given : path.join(env['HOME'] ?? os.homedir(), '.config');
  const textOf = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  return { url: textOf('DRYDOCK_URL'), key: textOf('DRYDOCK_KEY'), folder: path.join(base, 'drydock') };
}

export interface Target {
  url: string;
  key: string;
  /** The source of the URL and the key, for messages. */
  from: string;
}

interface Contexts {
  current: string | null;
  contexts: Record<string, { url: string; key: string }>;
}

const fileOf = ({ folder }: Config): string => path.join(folder, 'contexts.json');
const keyPattern = /^dd_(?:live|test)_[\x21-\x7e]+$/;
const isLoopback = (host: string): boolean => /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);

/** Reads the contexts of this user. Throws if other users could read or replace the keys. */
function readContexts(config: Config): Contexts {
  const file = fileOf(config);
  let text: string;
  try {
    const handle = fs.openSync(file, 'r');
    try {
      refuseOpenToOthers(file, fs.fstatSync(handle), 0o077, '600');
      refuseOpenToOthers(config.folder, fs.statSync(config.folder), 0o022, '700');
      text = fs.readFileSync(handle, 'utf8');
    } finally {
      fs.closeSync(handle);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (isObject(error) && error['code'] === 'ENOENT') return { current: null, contexts: {} };
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  return parseContexts(file, text);
}

function refuseOpenToOthers(file: string, { mode, uid }: fs.Stats, forbidden: number, wanted: string): void {
  const own = process.geteuid?.();
  if (own !== undefined && uid !== own)
    throw new UsageError(`${file} belongs to another user, so its keys are not used`);
  if (own !== undefined && (mode & forbidden) !== 0)
    throw new UsageError(
      `${file} is open to other users, so its keys are not used. ` +
        `chmod ${wanted} ${file} closes it; rotate the keys that were in it`,
    );
}

function parseContexts(file: string, text: string): Contexts {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    // Invalid JSON is refused below.
  }
  const contexts: Contexts = { current: null, contexts: {} };
  if (!isObject(found) || !isObject(found['contexts']))
    throw new UsageError(`${file} holds no contexts. Remove it and add them again`);
  for (const [name, context] of Object.entries(found['contexts'])) {
    if (!isObject(context) || typeof context['url'] !== 'string' || typeof context['key'] !== 'string')
      throw new UsageError(`${file} has no url or no key for ${name}`);
    contexts.contexts[name] = { url: context['url'], key: context['key'] };
  }
  if (typeof found['current'] === 'string') contexts.current = found['current'];
  return contexts;
}

/**
 * Writes the contexts to a new file, and then renames that file to contexts.json. So a killed command leaves either the
 * old or the new contexts.
 */
function writeContexts(config: Config, contexts: Contexts): void {
  fs.mkdirSync(config.folder, { recursive: true, mode: 0o700 });
  const beside = `${fileOf(config)}.${crypto.randomUUID()}`;
  fs.writeFileSync(beside, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  fs.renameSync(beside, fileOf(config));
}

/**
 * Finds the installation to call and the key for it: the named context, otherwise the environment, otherwise the
 * current context.
 */
export function findTarget(name: string | undefined, config: Config = readConfig()): Target {
  const { url, key } = config;
  if (name === undefined && (url !== undefined || key !== undefined)) {
    // A key is sent only to its own installation. So the key of the environment is never combined with the URL of a
    // context.
    if (url === undefined || key === undefined)
      throw new UsageError('Set DRYDOCK_URL and DRYDOCK_KEY both, or neither and use a context');
    if (!keyPattern.test(key)) throw new UsageError('DRYDOCK_KEY is no key: one begins with dd_live_ or dd_test_');
    return { url: originOf(url), key, from: 'DRYDOCK_URL and DRYDOCK_KEY' };
  }
  const { current, contexts } = readContexts(config);
  const wanted = name ?? current;
  if (wanted === null)
    throw new UsageError(
      'No installation is named. Add one with drydock contexts add NAME --url URL, or set DRYDOCK_URL and DRYDOCK_KEY',
    );
  const context = Object.hasOwn(contexts, wanted) ? contexts[wanted] : undefined;
  if (context === undefined)
    throw new UsageError(`There is no context ${wanted}; drydock contexts list shows all of them`);
  return { ...context, from: `context ${wanted}` };
}

function originOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.password !== '')
    throw new UsageError(`${url} is no address such as https://api.example.com`);
  return parsed.origin;
}

async function readKey(url: string): Promise<string> {
  const key = canAsk() ? await ask(`Key for ${clean(url)}: `, { hidden: true }) : (await readStdin()).trim();
  if (!keyPattern.test(key))
    throw new UsageError('That is no key: one begins with dd_live_ or dd_test_. Give it at the prompt, or over stdin');
  return key;
}

/** Returns the names of the contexts for completion, or no names if the file cannot be read. */
export function listNames(): string[] {
  try {
    return Object.keys(readContexts(readConfig()).contexts);
  } catch {
    return [];
  }
}

export function addContextCommands(contexts: Command, formatOf: (command: Command) => Format): void {
  const config = readConfig();
  contexts
    .command('add')
    .description('Keep an installation and a key for it; the key is asked for, or read from stdin')
    .argument('<name>', 'what to call it')
    .requiredOption('--url <url>', 'where it is, such as https://api.example.com')
    .action(async (name: string, { url: given }: { url: string }) => {
      if (!/^[a-z0-9][\w.-]*$/i.test(name))
        throw new UsageError('A name begins with a letter or digit; dots, dashes and underscores may follow');
      const url = originOf(given);
      const { protocol, hostname } = new URL(url);
      if (protocol === 'http:' && !isLoopback(hostname))
        tell(`${url} is not encrypted: anybody on the way can read the key. Use https if you can.`);
      const known = readContexts(config);
      const key = await readKey(url);
      writeContexts(config, { current: known.current ?? name, contexts: { ...known.contexts, [name]: { url, key } } });
      tell(`Context ${name} is kept in ${fileOf(config)}. drydock doctor checks it.`);
    });
  contexts
    .command('list')
    .description('The installations that are kept, without their keys')
    .action(async (_options: unknown, command: Command) => {
      const known = readContexts(config);
      const items = Object.entries(known.contexts).map(([name, { url }]) => ({
        name,
        url,
        current: name === known.current,
      }));
      await print(formatOf(command), items, () => tableOf(['name', 'url', 'current'], items));
    });
  const change = (name: string, make: (known: Contexts) => Contexts): void => {
    const known = readContexts(config);
    if (!Object.hasOwn(known.contexts, name)) throw new UsageError(`There is no context ${name}`);
    writeContexts(config, make(known));
  };
  contexts
    .command('use')
    .description('Call this one from now on')
    .argument('<name>')
    .action((name: string) => change(name, (known) => ({ ...known, current: name })));
  contexts
    .command('remove')
    .description('Forget one and its key; the key itself stays valid until it is revoked')
    .argument('<name>')
    .action((name: string) =>
      change(name, ({ current, contexts: { [name]: _forgotten, ...rest } }) => ({
        current: current === name ? null : current,
        contexts: rest,
      })),
    );
}

export interface Session {
  drydock: Drydock;
  call(id: OperationId, input: Input, options?: CallOptions): Promise<unknown>;
  /** The `Location` header of the last answer. After a 202 this is the path of the workflow. */
  location(): string | null;
}

export function openSession(context: string | undefined): Session {
  const { url, key } = findTarget(context);
  let location: string | null = null;
  const drydock = createDrydock({
    baseUrl: url,
    apiKey: key,
    fetch: async (...request) => {
      const response = await fetch(...request);
      location = response.headers.get('location');
      return response;
    },
  });
  // The cast is safe: the operation ids and the client's methods are generated from the same contract.
  const methods = drydock as unknown as Record<OperationId, (input: Input, options?: CallOptions) => Promise<unknown>>;
  return { drydock, call: (id, input, options) => methods[id](input, options), location: () => location };
}
