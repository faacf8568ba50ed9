import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endProcess, type ProcessProof } from './end-process';
import { findProgram } from './find-program';
import { startOnFreePort } from './free-port';
import { type ChildExit, type GuardedChild, spawnGuarded } from './guarded-child';

const timeoutMs = 1000;

/**
 * Tells whether a Redis with this password answers PING on loopback. A server that still loads its file answers with an
 * error, which counts as no answer.
 */
export function pingRedis(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    const finish = (isUp: boolean): void => {
      socket.destroy();
      resolve(isUp);
    };
    socket.setTimeout(timeoutMs, () => finish(false));
    socket.on('error', () => finish(false));
    socket.on('close', () => resolve(false));
    socket.on('data', (chunk) => {
      answer += chunk.toString();
      if (answer.includes('+PONG')) finish(true);
      else if (answer.includes('-')) finish(false);
    });
  });
}

interface RedisOptions {
  /**
   * The folder of the append-only file, the configuration and the generated password (0600). A missing folder is
   * created.
   */
  folder: string;
  /** By default a free port. */
  port?: number;
  /** True to write nothing to disk, for tests. */
  isEphemeral?: boolean;
  /**
   * The accepted passwords. `url` has the first password. By default a password is generated and kept in the folder.
   */
  passwords?: readonly string[];
  onLog?: (text: string) => void;
}

export interface RedisServer {
  port: number;
  url: string;
  proof: ProcessProof;
  exited: Promise<ChildExit>;
  stop(): Promise<void>;
}

const startTimeoutMs = 30_000;
const stopTimeoutMs = 10_000;

export function findRedis(): string | null {
  return findProgram(['valkey-server', 'redis-server']);
}

/**
 * Starts a private Redis or Valkey on loopback, with a password and, unless it is ephemeral, an append-only file. The
 * server evicts nothing, because a queue must not forget jobs. Resolves when the server answers, after it has loaded
 * its file. @throws if no program is on the PATH, or with the server's last output if it does not start
 */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const program = findRedis();
  if (program === null) throw new Error('Neither valkey-server nor redis-server is on the PATH');
  fs.mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const folder = fs.realpathSync(options.folder);
  await clearLeftoverRedis(folder);
  return startOnFreePort(options.port, (port) => startOn(port, { program, folder, options }));
}

interface Start {
  program: string;
  folder: string;
  options: RedisOptions;
}

async function startOn(port: number, { program, folder, options }: Start): Promise<RedisServer> {
  const [password = keptPassword(folder), ...others] = options.passwords ?? [];
  const configuration = path.join(folder, 'redis.conf');
  fs.writeFileSync(
    configuration,
    configurationText(folder, port, [password, ...others], options.isEphemeral === true),
    { mode: 0o600 },
  );
  const child = await spawnGuarded(program, [configuration], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    signalOnOrphan: 'SIGTERM',
  });
  fs.writeFileSync(path.join(folder, 'running.json'), JSON.stringify(child.proof), { mode: 0o600 });
  const stop = (): Promise<void> => child.stop('SIGTERM', stopTimeoutMs);
  try {
    await waitUntilAnswering(child, port, password, options.onLog);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, url: `redis://:${password}@127.0.0.1:${port}`, proof: child.proof, exited: child.exited, stop };
}

/** The passwords are in this file, because every user of the machine can read a command line. */
function configurationText(folder: string, port: number, passwords: readonly string[], isEphemeral: boolean): string {
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    'protected-mode yes',
    `user default on resetpass ~* &* +@all ${passwords.map((password) => `>${password}`).join(' ')}`,
    `dir ${JSON.stringify(folder)}`,
    'daemonize no',
    'save ""',
    `appendonly ${isEphemeral ? 'no' : 'yes'}`,
    'appendfsync everysec',
    'maxmemory-policy noeviction',
  ];
  return `${lines.join('\n')}\n`;
}

/** Reads the folder's password. The first start generates it. */
function keptPassword(folder: string): string {
  const file = path.join(folder, 'password');
  if (!fs.existsSync(file)) fs.writeFileSync(file, randomBytes(24).toString('hex'), { mode: 0o600 });
  return fs.readFileSync(file, 'utf8').trim();
}

async function clearLeftoverRedis(folder: string): Promise<void> {
  const note = path.join(folder, 'running.json');
  if (!fs.existsSync(note)) return;
  const noted: unknown = JSON.parse(fs.readFileSync(note, 'utf8') || 'null');
  const leftover = isProof(noted) ? noted : null;
  // Only pid and start time identify the server, because redis-server replaces its command line by its name and
  // address.
  if (leftover !== null && !(await endProcess(leftover, ['SIGTERM', 'SIGKILL'], stopTimeoutMs))) {
    throw new Error(`Redis (pid ${leftover.pid}) of an earlier run cannot be ended`);
  }
  fs.rmSync(note, { force: true });
}

function isProof(value: unknown): value is ProcessProof {
  return (
    typeof value === 'object' &&
    value !== null &&
    'pid' in value &&
    'startedTicks' in value &&
    typeof value.pid === 'number'
  );
}

async function waitUntilAnswering(
  child: GuardedChild,
  port: number,
  password: string,
  onLog?: (text: string) => void,
): Promise<void> {
  let lastWords = '';
  const keep = (chunk: Buffer): void => {
    lastWords = (lastWords + chunk.toString()).slice(-4000);
    onLog?.(chunk.toString());
  };
  child.process.stdout?.on('data', keep);
  child.process.stderr?.on('data', keep);
  const allSaid = once(child.process, 'close');
  const until = performance.now() + startTimeoutMs;
  while (!(await pingRedis(port, password))) {
    if (child.process.exitCode !== null || child.process.signalCode !== null) {
      await Promise.race([allSaid, sleep(1_000)]);
      throw new Error(`Redis did not start:\n${lastWords}`);
    }
    if (performance.now() > until)
      throw new Error(`Redis did not answer within ${startTimeoutMs / 1000} s:\n${lastWords}`);
    await sleep(20);
  }
}
