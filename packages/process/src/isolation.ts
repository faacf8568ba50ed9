import { spawnInBox } from './box';
import { privilegedPorts } from './box-script';

/**
 * How processes of different customers are isolated on this machine. `accounts`: this process is root, and each
 * customer has a uid. `user_namespaces`: an ordinary user may create namespaces. `none`: neither works, for `reason`.
 */
export type Isolation = { kind: 'accounts' } | { kind: 'user_namespaces' } | { kind: 'none'; reason: string };

/** Tells whether a box can have its own network, and if not, why. */
export type BoxNetwork = { kind: 'own' } | { kind: 'machine'; reason: string };

/** The account of the trial box if this process is root. */
const nobody = 65_534;

let found: Promise<Isolation> | undefined;

/**
 * Determines how this machine can isolate processes, by creating a box. Only such a trial gives the answer, because the
 * kernel, its sysctls, AppArmor and seccomp decide together. The result is kept.
 */
export function detectIsolation(): Promise<Isolation> {
  found ??= tryOnce();
  return found;
}

async function tryOnce(): Promise<Isolation> {
  if (process.platform !== 'linux')
    return { kind: 'none', reason: `boxes need Linux, and this is ${process.platform}` };
  const isolation: Isolation = process.getuid?.() === 0 ? { kind: 'accounts' } : { kind: 'user_namespaces' };
  const reason = await whyNot(isolation, null);
  return reason === null ? isolation : { kind: 'none', reason };
}

let foundNetwork: Promise<BoxNetwork> | undefined;

/**
 * Determines by a trial whether a box can have its own network. A kernel or a container may forbid such a network, and
 * `ip` or perl may be missing.
 */
export function detectBoxNetwork(): Promise<BoxNetwork> {
  foundNetwork ??= detectIsolation().then(async (isolation) => {
    if (isolation.kind === 'none') return { kind: 'machine', reason: isolation.reason };
    const ownNetwork = { ports: [privilegedPorts - 1] };
    // A failed trial is repeated once, because a slow box on a busy machine must not make all applications share the
    // network.
    const reason = (await whyNot(isolation, ownNetwork)) && (await whyNot(isolation, ownNetwork));
    return reason === null ? { kind: 'own' } : { kind: 'machine', reason };
  });
  return foundNetwork;
}

/** Returns the reason why a box of this kind failed, or null. */
async function whyNot(isolation: Isolation, ownNetwork: { ports: readonly number[] } | null): Promise<string | null> {
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
      ...(ownNetwork !== null && { ownNetwork }),
    });
    const { code, signal } = await child.exited;
    return code === 0 ? null : `a process in a box ended with ${signal ?? `code ${code}`}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
