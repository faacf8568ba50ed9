import { spawnInBox } from './box';
import { privilegedPorts } from './box-network';

/**
 * The way in which processes of different customers are kept apart on this machine. `accounts`: we are root, and each
 * tenant has a uid of its own. `user_namespaces`: we are an ordinary user, and the kernel lets us make namespaces.
 * `none`: neither works, for this `reason`.
 */
export type Isolation = { kind: 'accounts' } | { kind: 'user_namespaces' } | { kind: 'none'; reason: string };

/** Whether a box can have a network of its own here; `reason` says why not. */
export type BoxNetwork = { kind: 'own' } | { kind: 'machine'; reason: string };

/** The account of the trial. Any account but root's will do, because the trial needs no file of its own. */
const nobody = 65_534;

let found: Promise<Isolation> | undefined;

/**
 * Finds out how this machine can isolate processes, by making one box. It tries once and keeps the answer. Only a trial
 * can tell, because the kernel, its sysctls, AppArmor and seccomp decide together.
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
 * Finds out in the same way whether a box can have a network of its own: a kernel, a container or a machine without
 * `ip` and perl may not allow it.
 */
export function detectBoxNetwork(): Promise<BoxNetwork> {
  foundNetwork ??= detectIsolation().then(async (isolation) => {
    if (isolation.kind === 'none') return { kind: 'machine', reason: isolation.reason };
    const ownNetwork = { ports: [privilegedPorts - 1] };
    // The trial is repeated once, because one slow box on a machine that is busy at its start must not decide that all
    // applications share the network.
    const reason = (await whyNot(isolation, ownNetwork)) && (await whyNot(isolation, ownNetwork));
    return reason === null ? { kind: 'own' } : { kind: 'machine', reason };
  });
  return foundNetwork;
}

/** Null if a box of this kind was made and ended well. */
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
