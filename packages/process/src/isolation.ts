import { spawnInBox } from './box';

/**
 * How processes of different customers are kept apart on this machine. `accounts`: we are root, and each tenant has a uid of its own.
 * `user_namespaces`: we are an ordinary user, and the kernel lets us make namespaces. `none`: neither works, and `reason` says why.
 */
export type Isolation = { kind: 'accounts' } | { kind: 'user_namespaces' } | { kind: 'none'; reason: string };

/** Any account that is not root's: the trial needs no file of its own. */
const nobody = 65_534;

let found: Promise<Isolation> | undefined;

/** Finds out by making one box, once in the life of this process: what a kernel, a sysctl, AppArmor and seccomp allow together is in no file. */
export function detectIsolation(): Promise<Isolation> {
  found ??= tryOnce();
  return found;
}

async function tryOnce(): Promise<Isolation> {
  if (process.platform !== 'linux') return { kind: 'none', reason: `boxes need Linux, and this is ${process.platform}` };
  const isolation: Isolation = process.getuid?.() === 0 ? { kind: 'accounts' } : { kind: 'user_namespaces' };
  try {
    const child = await spawnInBox({
      isolation,
      command: ['/bin/sh', '-c', 'exit 0'],
      env: {},
      account: isolation.kind === 'accounts' ? nobody : null,
      mounts: [],
      workdir: '/',
      limits: { openFiles: 64 },
      stdio: 'ignore',
      onOrphan: 'SIGKILL',
    });
    const { code, signal } = await child.exited;
    return code === 0 ? isolation : { kind: 'none', reason: `a process in a box ended with ${signal ?? `code ${code}`}` };
  } catch (error) {
    return { kind: 'none', reason: error instanceof Error ? error.message : String(error) };
  }
}
