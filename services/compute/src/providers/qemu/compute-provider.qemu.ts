import type { Closing, ComputeDriver, ComputeReader } from '../compute-provider';
import { beginWork, reviveMachines } from './begin-work';
import { openMachineFolders } from './machine-folders';
import { findChange, prepareChange, type QemuChanges, sendChange } from './qemu-changes';
import type { QemuOptions } from './qemu-options';
import { looked, qemuReader } from './qemu-reader';

/**
 * A claim is visible to everybody at once. The limit covers the time that a worker needs between its note and its
 * claim.
 */
const lostAnswerSecondsUsual = 10;
const close = async (): Promise<void> => undefined;

/** Machines of this host, for handlers. */
export function qemuComputeReader({ folder }: Pick<QemuOptions, 'folder'>): ComputeReader & Closing {
  return { ...qemuReader(openMachineFolders(folder)), close };
}

/** Machines of this host, for workers. They keep running without this process. */
export function qemuCompute(options: QemuOptions): ComputeDriver & Closing {
  const begin = options.beginWork ?? ((machineFolder: string) => beginWork(machineFolder));
  const folders = openMachineFolders(options.folder);
  // The process of a job may have died, so each look by a worker makes the job continue.
  const changes: QemuChanges = { folders, reader: qemuReader(folders, begin), options, beginWork: begin };
  return {
    ...changes.reader,
    // The reconciliation calls this every minute, so the machines of a restarted host start again.
    listMachines: async (signal) => {
      await looked(reviveMachines(folders, begin));
      return await changes.reader.listMachines(signal);
    },
    lostAnswerSeconds: lostAnswerSecondsUsual,
    // A change is accepted once, however often it is sent: a job has the workflow's id, and only one claim of a
    // machine's next number succeeds.
    takesOnOnce: true,
    prepare: (change) => looked(prepareChange(changes, change)),
    send: (change, checkpoint, signal) => looked(sendChange(changes, change, checkpoint, signal)),
    find: (change, checkpoint) => looked(findChange(changes, change, checkpoint)),
    close,
  };
}
