import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { until } from '@drydock/testing/wait';

const sshd = '/usr/sbin/sshd';
export const isRoot = process.getuid?.() === 0;

export const isOnPath = (name: string): boolean =>
  (process.env['PATH'] ?? '').split(':').some((folder) => folder !== '' && existsSync(path.join(folder, name)));

/** The programs that a host over ssh needs, and those in `more`, that this machine lacks; '' if none is missing. */
export function missingForSshd(more: readonly string[]): string {
  const programs = ['tar', 'flock', 'timeout', 'ssh-keygen', ...more].filter((name) => !isOnPath(name));
  return [...(existsSync(sshd) ? [] : ['sshd']), ...programs].join(', ');
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      );
    });
  });
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.end());
  });

export interface StartedProcess {
  port: number;
  stop(): Promise<void>;
}

export const waitForPort = async (port: number): Promise<void> => {
  await until(() => answers(port), { timeoutMs: 30_000, everyMs: 50, what: `an answer on port ${port}` });
};

export async function startProcess(
  child: ChildProcess,
  port: number,
  endSignal: NodeJS.Signals = 'SIGINT',
): Promise<StartedProcess> {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await waitForPort(port);
  return {
    port,
    stop: async () => {
      child.kill(endSignal);
      await ended;
    },
  };
}

export interface StartedSshd extends StartedProcess {
  user: string;
  privateKeyFile: string;
  fingerprint: string;
}

/** Starts a real OpenSSH server with new keys, for this process's account. */
export async function startSshd(folder: string): Promise<StartedSshd> {
  const [hostKey, privateKeyFile, config] = ['host_key', 'client_key', 'sshd_config'].map((name) =>
    path.join(folder, name),
  ) as [string, string, string];
  for (const file of [hostKey, privateKeyFile])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  chmodSync(`${privateKeyFile}.pub`, 0o644);
  const port = await freePort();
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${privateKeyFile}.pub`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
    // With this HOME the shell does not find the start files of the account.
    `SetEnv HOME=${folder}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  // A server that runs as root needs this folder, which the system usually makes when it starts.
  if (isRoot) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const started = await startProcess(spawn(sshd, ['-D', '-e', '-f', config], { stdio: 'ignore' }), port);
  const fingerprint =
    execFileSync('ssh-keygen', ['-l', '-f', `${hostKey}.pub`], { encoding: 'utf8' }).split(' ')[1] ?? '';
  return { ...started, user: execFileSync('id', ['-un'], { encoding: 'utf8' }).trim(), privateKeyFile, fingerprint };
}
