import type { Closing, ComputeDriver, ComputeReader } from '../compute-provider';
import { beginWork, reviveMachines } from './begin-work';
import { openMachineFolders } from './machine-folders';
import { findChange, prepareChange, type QemuChanges, sendChange } from './qemu-changes';
import type { QemuOptions } from './qemu-options';
import { looked, qemuReader } from './qemu-reader';

/**
 * A claimed job is visible to everybody at once. So the time covers only what a worker needs between its note of a send
 * and the claim.
 */
const lostAnswerSecondsUsual = 10;
const close = async (): Promise<void> => undefined;

/** The reading part of the machines of this host, for handlers. */
export function qemuComputeReader({ folder }: Pick<QemuOptions, 'folder'>): ComputeReader & Closing {
  return { ...qemuReader(openMachineFolders(folder)), close };
}

/** Machines of this host, for workers. They keep running without this process. */
export function qemuCompute(options: QemuOptions): ComputeDriver & Closing {
  const begin = options.beginWork ?? ((machineFolder: string) => beginWork(machineFolder));
  const folders = openMachineFolders(options.folder);
  // The process that carries out a job may have died, so each read by a worker starts it again.
  const changes: QemuChanges = { folders, reader: qemuReader(folders, begin), options, beginWork: begin };
  return {
    ...changes.reader,
    // The reconciliation lists machines every minute, so the machines of a restarted host start again.
    listMachines: async (signal) => {
      await looked(reviveMachines(folders, begin));
      return await changes.reader.listMachines(signal);
    },
    lostAnswerSeconds: lostAnswerSecondsUsual,
    // A job has the workflow's id, and only one claim of a machine's next number succeeds. So a change is accepted
    // once, however often it is sent.
    takesOnOnce: true,
    prepare: (change) => looked(prepareChange(changes, change)),
    send: (change, checkpoint, signal) => looked(sendChange(changes, change, checkpoint, signal)),
    find: (change, checkpoint) => looked(findChange(changes, change, checkpoint)),
    close,
  };
}
