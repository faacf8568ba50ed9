import fs from 'node:fs';
import path from 'node:path';
import { type PostgresServer, startPostgres } from '@drydock/postgres';
import { findRedis, spawnGuarded, startRedis } from '@drydock/process';
import { z } from 'zod';
import { type DevConfig, inRepo, repoRoot } from './dev-config';
import type { ManagedProcess, Running } from './supervisor';

/** The size above which a log file is renamed. One renamed file is kept. */
const logBytesMax = 10 << 20;

interface ChildLog {
  file: string;
  write(chunk: string | Buffer): void;
}

/**
 * Opens `<folder>/<name>.log` for appending. A file larger than 10 MB is renamed to `<name>.1.log`. Output that cannot
 * be written is lost.
 */
export function openChildLog(folder: string, name: string): ChildLog {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, `${name}.log`);
  let bytes = fs.existsSync(file) ? fs.statSync(file).size : 0;
  return {
    file,
    write: (chunk) => {
      try {
        if (bytes > logBytesMax) {
          fs.renameSync(file, path.join(folder, `${name}.1.log`));
          bytes = 0;
        }
        fs.appendFileSync(file, chunk, { mode: 0o600 });
        bytes += chunk.length;
      } catch {
        // The disk may be full. An error here would end this supervisor, and with it every process.
      }
    },
  };
}

export function readLastLines(file: string, linesMax: number): string {
  if (!fs.existsSync(file)) return '(it wrote no log)';
  return fs.readFileSync(file, 'utf8').trimEnd().split('\n').slice(-linesMax).join('\n');
}

const quietMs = 60_000;

const entrySchema = z.looseObject({ level: z.string(), msg: z.string().default('') });
const errorLevels = new Set(['error', 'fatal']);

/**
 * Returns a function that is given the output of a process and prints the process's errors on the terminal. The
 * terminal shows only the message of an error, and the same message at most once a minute.
 */
function createErrorSummary(name: string, say: (line: string) => void): (chunk: string) => void {
  let rest = '';
  const lastSaidMs = new Map<string, number>();
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = readError(line);
      if (message === null || performance.now() - (lastSaidMs.get(message) ?? -quietMs) < quietMs) continue;
      lastSaidMs.set(message, performance.now());
      say(`${name}: ${message}`);
    }
  };
}

function readError(line: string): string | null {
  if (!line.startsWith('{')) return null;
  try {
    const entry = entrySchema.parse(JSON.parse(line));
    return errorLevels.has(entry.level) ? entry.msg : null;
  } catch {
    return null; // the line is no log entry
  }
}

export interface NodeProgram {
  name: string;
  /** The built entry point, relative to the clone's root. */
  entry: string;
  port: number;
  /** Flags of Node itself. */
  flags: readonly string[];
  environment: Readonly<Record<string, string>>;
}

/** How long a process may take to end after SIGTERM, in milliseconds. The process itself gives its work 25 s. */
const stopTimeoutMs = 28_000;

/**
 * Returns a Node program of Drydock for the supervisor, with the telemetry preload. Its environment is the one that
 * `describe` returns, with its name and address added. Its output goes to `<logsDir>/<name>.log`. `describe` is called
 * again at each start, because secrets may have been rotated.
 */
export function managedNode(describe: () => NodeProgram, logsDir: string, say: (line: string) => void): ManagedProcess {
  const { name, port, flags, entry: program } = describe();
  const entry = inRepo(program);
  const start = async (): Promise<Running> => {
    const log = openChildLog(logsDir, name);
    const summarise = createErrorSummary(name, say);
    const preload = inRepo('packages/service/dist/telemetry/preload.js');
    const child = await spawnGuarded(process.execPath, [...flags, '--require', preload, entry], {
      cwd: repoRoot,
      env: { ...describe().environment, SERVICE_NAME: name, HOST: '127.0.0.1', PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
      signalOnOrphan: 'SIGTERM',
    });
    for (const stream of [child.process.stdout, child.process.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        log.write(chunk);
        summarise(chunk.toString());
      });
    }
    return {
      port,
      proof: child.proof,
      program: entry,
      exited: child.exited,
      stop: () => child.stop('SIGTERM', stopTimeoutMs),
    };
  };
  return { name, start };
}

export interface ManagedPostgres {
  managed: ManagedProcess;
  /** Returns the server of the latest start. @throws before the first start */
  server(): PostgresServer;
}

/** Returns an embedded Postgres for the supervisor. Folder, port and password are the same at every start. */
export function managedPostgres(options: {
  name: string;
  folder: string;
  port: number;
  isEphemeral: boolean;
  /** The uid of the server if this process is root. */
  account: number;
  sessionBytes?: number;
  isSocketOnly?: boolean;
  settings?: Readonly<Record<string, string>>;
  onLog: (text: string) => void;
}): ManagedPostgres {
  let server: PostgresServer | undefined;
  const start = async (): Promise<Running> => {
    server = await startPostgres(options);
    const { port, proof, exited, stop } = server;
    return { port, proof, program: '', exited, stop };
  };
  return {
    managed: { name: options.name, start },
    server: () => {
      if (server === undefined) throw new Error(`${options.name} was not started yet`);
      return server;
    },
  };
}

/** The queue that this start uses: the user's Redis, a Redis of this stack, or tables in Drydock's Postgres. */
type QueueChoice = ({ kind: 'redis-url'; url: string } | { kind: 'redis-child' } | { kind: 'postgres' }) & {
  note: string;
};

/**
 * Chooses the Redis at REDIS_URL, else a Valkey or Redis on the PATH, else Postgres. QUEUE_BACKEND forces a backend.
 * @throws if QUEUE_BACKEND forces Redis and there is none
 */
export function chooseQueue(config: Pick<DevConfig, 'queueBackend' | 'redisUrl'>): QueueChoice {
  if (config.queueBackend === 'postgres') return { kind: 'postgres', note: 'Postgres' };
  if (config.redisUrl !== undefined) return { kind: 'redis-url', url: config.redisUrl, note: 'Redis at REDIS_URL' };
  if (findRedis() !== null) return { kind: 'redis-child', note: 'a private Redis or Valkey' };
  if (config.queueBackend === 'redis')
    throw new Error('QUEUE_BACKEND=redis needs REDIS_URL, or valkey-server or redis-server on the PATH');
  return { kind: 'postgres', note: 'Postgres' };
}

/**
 * Returns a Redis of this stack for the supervisor. `passwordsNow` is called at each start, because secrets may have
 * been rotated.
 */
export function managedRedis({
  passwordsNow,
  ...options
}: {
  folder: string;
  port: number;
  isEphemeral: boolean;
  onLog: (text: string) => void;
  passwordsNow: () => readonly string[];
}): ManagedProcess {
  const start = async (): Promise<Running> => {
    const server = await startRedis({ ...options, passwords: passwordsNow() });
    return { port: server.port, proof: server.proof, program: '', exited: server.exited, stop: () => server.stop() };
  };
  return { name: 'redis', start };
}
