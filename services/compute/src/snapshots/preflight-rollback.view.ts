import type { Preflight } from '@drydock/contracts/preflight';
import type { Server } from '../servers/server.types';
import { serverPath } from '../servers/server-names';
import type { RollbackWorld } from './snapshot.rules';

type Finding = Preflight['findings'][number];

/** Older than this a snapshot is worth a second thought, in seconds. */
const oldAfterSeconds = 7 * 86_400;

export function viewPreflight(server: Server, world: RollbackWorld, refusal: Preflight['refusal'], now: Date): Preflight {
  const { snapshot } = world;
  const ageSeconds = snapshot === null ? 0 : Math.max(0, Math.floor((now.getTime() - snapshot.createdAt.getTime()) / 1_000));
  return {
    would: `Overwrite the disk of ${server.name} with the snapshot. Everything written since is lost, and the current state is not kept`,
    resource: serverPath(server.id),
    point: snapshot === null ? null : { id: snapshot.id, taken_at: snapshot.createdAt.toISOString(), age_seconds: ageSeconds },
    // The disk is the machine's own: nothing is staged beside it.
    space: null,
    refusal,
    findings: findingsOf(server, world, ageSeconds),
    undo: false,
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
    machine?.powerState === 'on' && { level: 'WARNING', code: 'server_running', detail: 'The machine is stopped for it without notice.' },
    capabilities.includes('compute:snapshots') &&
      refusesNothing(server) && { level: 'INFO', code: 'take_a_snapshot', detail: 'A snapshot taken now would keep the current state.' },
  ];
  return findings.filter((finding) => finding !== false);
}

const refusesNothing = ({ operable, status }: Server): boolean => operable && status === 'active';
