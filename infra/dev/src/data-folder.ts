import { hkdfSync, randomBytes, randomInt } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprintOf } from '@drydock/postgres';
import {
  endProcess,
  isPortFree,
  isSameProcess,
  makePassableFolder,
  type ProcessProof,
  proveProcess,
} from '@drydock/process';
import { z } from 'zod';
import type { SecretPlace } from './place';

/**
 * Replaces a file in one step, so that a reader never finds half a file. Only the user of this process can read the
 * file.
 */
function writeFileAtomically(file: string, content: string): void {
  const unfinished = `${file}.${process.pid}`;
  fs.writeFileSync(unfinished, content, { mode: 0o600 });
  fs.renameSync(unfinished, file);
}

export function writeJsonAtomically(file: string, value: unknown): void {
  writeFileAtomically(file, `${JSON.stringify(value, null, 2)}\n`);
}

const supervisorSchema = z.object({ pid: z.int().positive(), startedTicks: z.string() });

/** How long a leftover process may take to end after SIGTERM, before it gets SIGKILL. */
const graceMs = 5_000;

/**
 * The pause after which a supervisor reads supervisor.json again. Two supervisors that start together may both find no
 * other supervisor, and both write the file. The supervisor that wrote last continues.
 */
const sameMomentMs = 250;

/**
 * Claims the data folder for this supervisor, and ends the processes that an earlier supervisor left running. A process
 * is ended only if its pid, its start time and its program all match the record, because the system reuses pids.
 * A leftover server of Postgres or Redis is ended by the next start of that server. @throws if another supervisor uses
 * the folder
 */
export async function claimDataFolder(dataDir: string, say: (line: string) => void): Promise<void> {
  makePassableFolder(dataDir);
  const file = path.join(dataDir, 'supervisor.json');
  refuseOther(dataDir, file);
  const proof = proveProcess(process.pid);
  if (proof !== null) writeJsonAtomically(file, proof);
  await sleep(sameMomentMs);
  refuseOther(dataDir, file);
  await Promise.all(Object.entries(readNotedProcesses(dataDir)).map(([name, noted]) => endLeftover(name, noted, say)));
}

function refuseOther(dataDir: string, file: string): void {
  if (!fs.existsSync(file)) return;
  const other = supervisorSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8')));
  if (!isSameProcess(other) || other.pid === process.pid) return;
  throw new Error(
    `Drydock already runs on ${dataDir} (pid ${other.pid}). Stop it first, or set DRYDOCK_DATA_DIR and DRYDOCK_PORT.`,
  );
}

async function endLeftover(name: string, noted: NotedProcess, say: (line: string) => void): Promise<void> {
  if (noted.program === '' || !isSameProcess(noted, [noted.program])) return;
  say(`Ending ${name} (pid ${noted.pid}) of an earlier run`);
  if (!(await endProcess(noted, ['SIGTERM', 'SIGKILL'], graceMs)))
    throw new Error(`${name} (pid ${noted.pid}) of an earlier run cannot be ended`);
}

/** The functions of a SecretPlace that derive a value from the master key and a label. */
type Secrets = Pick<SecretPlace, 'current' | 'rotated' | 'fingerprint' | 'derive'>;

/**
 * Opens the master key in the data folder. The first start creates the key with mode 0600. While the key is rotated,
 * `master.key` has two keys, separated by a comma. If `emulators-master.key` exists, the secrets of emulators are
 * derived from it instead, so that they survive a rotation as those of real providers do.
 */
export function openMasterKey(dataDir: string): Secrets {
  const [file, ofEmulators] = [path.join(dataDir, 'master.key'), path.join(dataDir, 'emulators-master.key')];
  if (!fs.existsSync(file)) writeFileAtomically(file, `${randomBytes(32).toString('hex')}\n`);
  const read = (from: string): string[] => {
    const text = fs.readFileSync(from, 'utf8').trim();
    if (!/^[0-9a-f]{64}(?:,[0-9a-f]{64})*$/i.test(text)) throw new Error(`${from} is not a key of 32 bytes in hex`);
    return text.split(',');
  };
  const derive = (label: string, masters: readonly string[]): string =>
    masters
      .map((master) => Buffer.from(hkdfSync('sha256', Buffer.from(master, 'hex'), '', label, 32)).toString('hex'))
      .join(',');
  read(file);
  const current = (label: string): string => derive(label, read(file).slice(0, 1));
  return {
    current,
    rotated: (label) => derive(label, read(file)),
    fingerprint: (label) => fingerprintOf(current(label)),
    derive: (label) => derive(label, read(fs.existsSync(ofEmulators) ? ofEmulators : file).slice(0, 1)),
  };
}

const proofsSchema = z.record(
  z.string(),
  z.object({ pid: z.int().positive(), startedTicks: z.string(), program: z.string() }),
);

/** The identity of a recorded process: its pid, its start time, and a text in its command line. */
type NotedProcess = ProcessProof & { program: string };

export interface ProcessTable {
  file: string;
  up(name: string, process: NotedProcess, port: number): void;
  down(name: string): void;
}

const proofsFile = (dataDir: string): string => path.join(dataDir, 'proofs.json');

/**
 * Opens `<dataDir>/processes.json`, which lists the pid and port of each running process for people and tests. The file
 * `proofs.json` beside it identifies the processes for the next start, in case this supervisor is killed.
 */
export function openProcessTable(dataDir: string): ProcessTable {
  const file = path.join(dataDir, 'processes.json');
  const running = new Map<string, { pid: number; port: number }>();
  const proofs = new Map<string, NotedProcess>();
  const write = (): void => {
    writeJsonAtomically(proofsFile(dataDir), Object.fromEntries(proofs));
    writeJsonAtomically(file, Object.fromEntries(running));
  };
  write();
  return {
    file,
    up: (name, process, port) => {
      running.set(name, { pid: process.pid, port });
      proofs.set(name, process);
      write();
    },
    down: (name) => {
      running.delete(name);
      proofs.delete(name);
      write();
    },
  };
}

function readNotedProcesses(dataDir: string): Record<string, NotedProcess> {
  const file = proofsFile(dataDir);
  return fs.existsSync(file) ? proofsSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8'))) : {};
}

const portsSchema = z.record(z.string(), z.int());

/**
 * The range of the processes' ports. Linux and macOS give outgoing connections ports above it, and the ports of sites
 * and databases lie above it too (`packages/agent`). So no other program gets one of these ports by chance.
 */
const firstPort = 20_000;
const endPort = 25_000;
/**
 * The number of ports in a supervisor's block of ports. While a supervisor runs, it listens on the first port of its
 * block, so that two supervisors never choose new ports from the same block.
 */
const blockSize = 100;

export interface PortBook {
  /**
   * Returns the port that the process had at the last start, or a new port at the first start. If another program
   * listens on the earlier port, tells the user and returns a new port.
   */
  choose(name: string): Promise<number>;
  /** Records a port that the user has chosen. @throws if another program listens on the port */
  insist(name: string, port: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * Keeps the port of each process in `<dataDir>/ports.json`. Ask for the port of a process before the process starts,
 * because a port on which the process already listens counts as taken.
 */
export async function openPortBook(dataDir: string, say: (line: string) => void): Promise<PortBook> {
  const file = path.join(dataDir, 'ports.json');
  const ports = fs.existsSync(file) ? portsSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8'))) : {};
  const keep = (name: string, port: number): number => {
    ports[name] = port;
    writeJsonAtomically(file, ports);
    return port;
  };
  const block = await holdBlock(ports['supervisor']);
  keep('supervisor', block.port);
  return {
    choose: async (name) => {
      const kept = ports[name];
      if (kept !== undefined && (await isPortFree(kept))) return kept;
      const port = await findQuietPort(block.port, new Set(Object.values(ports)));
      if (kept !== undefined) say(`Port ${kept} of ${name} is taken by another program; it moves to ${port}`);
      return keep(name, port);
    },
    insist: async (name, port) => {
      if (!(await isPortFree(port)))
        throw new Error(`Port ${port} is taken by another program. DRYDOCK_PORT=<another> npm start moves Drydock.`);
      return keep(name, port);
    },
    close: block.close,
  };
}

/**
 * Listens on the first port of a block: on `wanted` if that port is free, otherwise on the first port of a random
 * block.
 */
async function holdBlock(wanted: number | undefined): Promise<{ port: number; close(): Promise<void> }> {
  for (let port = wanted; ; port = undefined) {
    port ??= firstPort + blockSize * randomInt((endPort - firstPort) / blockSize);
    // The server only reserves the port. It ends every connection at once, and does not keep this process alive.
    const server = net.createServer((socket) => socket.destroy()).unref();
    const isOurs = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isOurs) return { port, close: () => new Promise((resolve) => server.close(() => resolve())) };
  }
}

async function findQuietPort(block: number, taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const port = randomInt(block + 1, block + blockSize);
    if (!taken.has(port) && (await isPortFree(port))) return port;
  }
}
