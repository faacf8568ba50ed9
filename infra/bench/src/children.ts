import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port')),
      );
    });
    server.on('error', reject);
  });

/**
 * The processor time of a process since its start, in microseconds. Undefined if /proc does not have the process: the
 * process has ended, or the system is not Linux.
 */
export type CpuTime = number | undefined;

export interface Child {
  url: string;
  cpuTime(): CpuTime;
  stop(): Promise<void>;
}

/** Starts a Node program that listens on PORT, and waits until `path` answers with any status. */
export async function startChild(
  script: string,
  env: Record<string, string>,
  { path = '/', flags = [] }: { path?: string; flags?: readonly string[] } = {},
): Promise<Child> {
  const port = await freePort();
  const child: ChildProcess = spawn(process.execPath, [...flags, script], {
    env: { ...process.env, NODE_ENV: 'production', LOG_LEVEL: 'warn', HOST: '127.0.0.1', ...env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await Promise.race([gone, sleep(5_000)]);
    child.kill('SIGKILL');
  };
  for (let tries = 0; tries < 300; tries += 1) {
    if (child.exitCode !== null) throw new Error(`${script} ended with ${child.exitCode}`);
    const answered = await request(url + path).then(
      async (response) => {
        await response.body.dump();
        return true;
      },
      () => false,
    );
    if (answered) return { url, cpuTime: () => cpuTimeOf(child.pid), stop };
    await sleep(50);
  }
  await stop();
  throw new Error(`${script} did not answer`);
}

/**
 * Linux counts processor time in ticks of a hundredth of a second, which is precise enough for a load of some seconds.
 */
const microsecondsPerTick = 10_000;

export function cpuTimeOf(pid: number | undefined): CpuTime {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The second field is the program's name in brackets, which may contain spaces. So the fields are counted from the
  // closing bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * microsecondsPerTick;
}
