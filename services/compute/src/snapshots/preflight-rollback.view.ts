import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { Server } from '../servers/server.types';
import { serverPath } from '../servers/server-names';
import type { RollbackWorld } from './snapshot.rules';

type Finding = Preflight['findings'][number];

/** A snapshot older than this gets a warning, in seconds. */
const oldAfterSeconds = 7 * 86_400;

export function viewPreflight(
  server: Server,
  world: RollbackWorld,
  refusal: Preflight['refusal'],
  now: Date,
): Preflight {
  const { snapshot } = world;
  const ageSeconds =
    snapshot === null ? 0 : Math.max(0, Math.floor((now.getTime() - snapshot.createdAt.getTime()) / 1_000));
  return {
    would: `Overwrite the disk of ${server.name} with the snapshot. Everything written since is lost, and the current state is not kept`,
    resource: serverPath(server.id),
    point:
      snapshot === null
        ? null
        : { id: snapshot.id, taken_at: snapshot.createdAt.toISOString(), age_seconds: ageSeconds },
    space: spaceOf(world),
    refusal,
    findings: findingsOf(server, world, ageSeconds),
    undo: false,
  };
}

const bytesInGb = 1e9;

/**
 * The whole disk is overwritten, so all of it is free for the snapshot's content, and nothing is staged beside it. Null
 * if the provider does not report it.
 */
function spaceOf({ machine, snapshot }: RollbackWorld): Preflight['space'] {
  const neededGb = snapshot?.sizeGb ?? snapshot?.diskGb ?? null;
  if (neededGb === null) return null;
  const freeGb = machine?.diskGb ?? null;
  return {
    needed_bytes: Math.ceil(neededGb * bytesInGb),
    free_bytes: freeGb === null ? null : Math.floor(freeGb * bytesInGb),
  };
}

function findingsOf(server: Server, { machine, snapshot, capabilities }: RollbackWorld, ageSeconds: number): Finding[] {
  const findings: Array<Finding | false> = [
    machine === null && { level: 'ERROR', code: 'machine_missing', detail: 'The provider knows no such machine.' },
    ageSeconds > oldAfterSeconds && {
      level: 'WARNING',
      code: 'old_snapshot',
      detail: `Everything written since ${snapshot?.createdAt.toISOString()} is lost.`,
    },
    machine?.powerState === 'on' && {
      level: 'WARNING',
      code: 'server_running',
      detail: 'The machine is stopped without notice.',
    },
    capabilities.includes('compute:snapshots') &&
      refusesNothing(server) && {
        level: 'INFO',
        code: 'take_a_snapshot',
        detail: 'A snapshot taken now would keep the current state.',
      },
  ];
  return findings.filter((finding) => finding !== false);
}

const refusesNothing = ({ operable, status }: Server): boolean => operable && status === 'active';
