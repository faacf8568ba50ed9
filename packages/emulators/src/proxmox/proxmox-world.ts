import type { Clock } from '../protocol/clock';
import type { LedgerFile } from '../protocol/ledger';
import type { StateFile } from '../protocol/state-file';
import { endTask } from './end-task';
import { died, forbidden, unreachable } from './proxmox-errors';
import type { ProxmoxState, Task, Vm } from './proxmox-state';
import type { TaskSeconds } from './task-seconds';

export interface ProxmoxWorld {
  readonly state: ProxmoxState;
  readonly clock: Clock;
  readonly taskSeconds: TaskSeconds;
  /** Nodes that the others do not reach. */
  readonly downNodes: Set<string>;
  /** Saves what was changed, together with the task that was really accepted: first the state, then the ledger. */
  save(taken?: Task): void;
  /** Ends everything that is over by now. */
  settle(): void;
}

export function openWorld(
  state: ProxmoxState,
  {
    clock,
    file,
    ledger,
    taskSeconds,
  }: { clock: Clock; file: StateFile<ProxmoxState>; ledger: LedgerFile; taskSeconds: TaskSeconds },
): ProxmoxWorld {
  const save: ProxmoxWorld['save'] = (task) => {
    state.clock = clock.anchor;
    if (task === undefined) return file.write(state);
    const entry = {
      ...{
        seq: (state.lastEntry?.seq ?? 0) + 1,
        time: new Date(task.started).toISOString(),
        project: task.account ?? 'staff',
      },
      ...{ resource: String(task.vmid), op: task.type, action_id: task.upid, detail: task.snapname ?? '' },
      ...{ fence: '0' as const, workflow_id: null, outcome: 'accepted' as const },
    };
    state.lastEntry = entry;
    file.write(state);
    ledger.append(entry);
  };
  const settle = (): void => {
    const over = state.tasks.filter(({ isOver, endsAt }) => !isOver && endsAt <= clock.now());
    for (const task of over.sort((one, other) => one.endsAt - other.endsAt)) endTask(state, task);
    if (over.length > 0) save();
  };
  return { state, clock, taskSeconds, downNodes: new Set(), save, settle };
}

/**
 * The account's VM on this node. The config of a VM on another node cannot be read here. @throws Refusal 500 or 403, as
 * the real cluster does
 */
export function requireVm({ state, downNodes }: ProxmoxWorld, account: string, node: string, vmid: string): Vm {
  if (downNodes.has(node)) throw unreachable();
  const vm = state.vms.find((candidate) => String(candidate.vmid) === vmid && candidate.node === node);
  if (vm === undefined) throw died(`Configuration file 'nodes/${node}/qemu-server/${vmid}.conf' does not exist`);
  if (vm.account !== null && vm.account !== account) throw forbidden(`/vms/${vmid}`, 'VM.Audit');
  return vm;
}
