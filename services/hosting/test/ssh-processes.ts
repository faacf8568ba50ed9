import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { until } from '@drydock/test-kit/wait';

const sshd = '/usr/sbin/sshd';
const serversDir = '/usr/lib/postgresql';
const isRoot = process.getuid?.() === 0;

const isOnPath = (name: string): boolean =>
  (process.env['PATH'] ?? '').split(':').some((folder) => folder !== '' && existsSync(path.join(folder, name)));

/** Debian's server programs, of the version that Debian's client programs speak to. */
function findServerDir(): string | null {
  const versions = existsSync(serversDir) ? readdirSync(serversDir).sort((left, right) => Number(right) - Number(left)) : [];
  const found = versions.map((version) => path.join(serversDir, version, 'bin')).find((bin) => existsSync(path.join(bin, 'initdb')));
  return found ?? null;
}

/** What a host over ssh needs and this machine lacks; '' when nothing. */
export function missingForSsh(): string {
  const programs = ['tar', 'zstd', 'flock', 'pg_dump', 'pg_restore', 'psql', 'ssh-keygen'].filter((name) => !isOnPath(name));
  return [...(existsSync(sshd) ? [] : ['sshd']), ...(findServerDir() === null ? ['postgresql'] : []), ...programs].join(', ');
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))));
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

async function startProcess(child: ChildProcess, port: number): Promise<StartedProcess> {
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await until(() => answers(port), { timeoutMs: 20_000, everyMs: 50, what: `an answer on port ${port}` });
  return {
    port,
    stop: async () => {
      child.kill('SIGINT');
      await ended;
    },
  };
}

/** Debian's own Postgres with a password; as root, it runs as the account that Debian made for it. */
export async function startHostPostgres(folder: string): Promise<StartedProcess & { adminUrl: string }> {
  const bin = findServerDir() ?? '';
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  const account = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  const [dataDir, passwordFile, password] = [path.join(folder, 'postgres'), path.join(folder, 'password'), randomBytes(16).toString('hex')];
  mkdirSync(dataDir);
  writeFileSync(passwordFile, password);
  if (account.uid !== undefined) for (const name of [dataDir, passwordFile]) chownSync(name, account.uid, account.gid);
  const options = { ...account, cwd: dataDir, stdio: 'ignore' } as const;
  const setUp = ['-D', dataDir, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '-E', 'UTF8', '--locale=C', '-N'];
  execFileSync(path.join(bin, 'initdb'), setUp, options);
  const port = await freePort();
  const settings = ['-D', dataDir, '-p', String(port), '-h', '127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'fsync=off'];
  const started = await startProcess(spawn(path.join(bin, 'postgres'), settings, options), port);
  return { ...started, adminUrl: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres` };
}

export interface StartedSshd extends StartedProcess {
  user: string;
  privateKeyFile: string;
  fingerprint: string;
}

/** The real OpenSSH server with keys of its own, for this very account. */
export async function startSshd(folder: string): Promise<StartedSshd> {
  const [hostKey, privateKeyFile, config] = ['host_key', 'client_key', 'sshd_config'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const file of [hostKey, privateKeyFile]) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
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
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  // Only a server that runs as root insists on this folder, which the system makes at its start.
  if (isRoot) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const started = await startProcess(spawn(sshd, ['-D', '-e', '-f', config], { stdio: 'ignore' }), port);
  const fingerprint = execFileSync('ssh-keygen', ['-l', '-f', `${hostKey}.pub`], { encoding: 'utf8' }).split(' ')[1] ?? '';
  return { ...started, user: execFileSync('id', ['-un'], { encoding: 'utf8' }).trim(), privateKeyFile, fingerprint };
}
