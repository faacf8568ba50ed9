import { setTimeout as sleep } from 'node:timers/promises';
import { faultpoint, readIfThere } from '@drydock/process';
import {
  type JobRecord,
  type MachineRecord,
  machineRecordSchema,
  readLastJob,
  removeRecord,
  retireMachine,
  saveJob,
  snapshotIdOf,
} from './machine-folders';
import {
  applyInside,
  createDisk,
  DiskTooSmall,
  deleteInside,
  GuestUnresponsive,
  listInside,
  mendInside,
  removeDisk,
  shutDownGuest,
  startQemu,
  stopQemu,
  takeInside,
} from './qemu-process';
import { readStatus } from './qmp';

class SnapshotMissing extends Error {
  override readonly name = 'SnapshotMissing';
}

const triesMax = 3;
const pauseMs = 300;

/**
 * Carries out the machine's newest job to its end, from wherever an earlier process left it. Each part of the work may
 * be repeated until the job is marked `isApplied`. After the mark the guest may write, so a repeat would lose data. The
 * caller must hold the machine's lock.
 */
export async function carryOutJob(machineFolder: string): Promise<void> {
  const job = await readLastJob(machineFolder);
  if (job === null || job.state !== 'running') return;
  const failure = await tryWork(machineFolder, job);
  const ended: JobRecord = {
    ...((await readLastJob(machineFolder)) ?? job),
    state: failure === null ? 'succeeded' : 'failed',
    failure,
  };
  // A machine that ran before its rollback or reboot is started even if the job failed.
  if (failure !== null && job.startsAfter) await startAnyway(machineFolder);
  faultpoint(`qemu.${job.kind}.before_end`);
  await saveJob(machineFolder, ended);
  if (job.kind === 'delete' && failure === null) await retireMachine(machineFolder);
}

/** Starts the machine if possible. The caller reports the job as failed in any case. */
async function startAnyway(machineFolder: string): Promise<void> {
  try {
    // A machine that runs was never stopped, so its disk needs no repair.
    if ((await readStatus(machineFolder)) === 'off') await mendInside(machineFolder);
    await startQemu(machineFolder, await readRecord(machineFolder));
  } catch {
    // If the start fails, the machine stays off until staff look at it.
  }
}

/** Tries the job's work. Resolves with the failure, or with null if the work is done. */
async function tryWork(machineFolder: string, job: JobRecord): Promise<JobRecord['failure']> {
  for (let tried = 1; ; tried += 1) {
    try {
      await work(machineFolder, job);
      return null;
    } catch (error) {
      const internal = error instanceof Error ? error.message : String(error);
      if (error instanceof DiskTooSmall) return { reason: 'incompatible', internal };
      if (error instanceof SnapshotMissing) return { reason: 'snapshot_not_found', internal };
      if (error instanceof GuestUnresponsive) return { reason: 'guest_unresponsive', internal };
      if (tried === triesMax) return { reason: 'rejected', internal };
      await sleep(pauseMs);
    }
  }
}

async function work(machineFolder: string, job: JobRecord): Promise<void> {
  switch (job.kind) {
    case 'create':
      return await createDisk(machineFolder, await readRecord(machineFolder));
    case 'start':
    case 'power_on':
      return await startQemu(machineFolder, await readRecord(machineFolder));
    case 'power_off':
      return await powerOff(machineFolder, job);
    case 'reboot':
      return await reboot(machineFolder, job);
    case 'delete':
      await stopQemu(machineFolder);
      await removeRecord(machineFolder);
      return await removeDisk(machineFolder);
    case 'take_snapshot':
      return await takeInside(machineFolder, snapshotIdOf(job));
    case 'delete_snapshot':
      return await deleteInside(machineFolder, job.snapshotId ?? '');
    case 'rollback':
      return await rollBack(machineFolder, job);
  }
}

async function powerOff(machineFolder: string, { isForced, guestSeconds }: JobRecord): Promise<void> {
  if (!isForced) await shutDownGuest(machineFolder, guestSeconds);
  await stopQemu(machineFolder);
}

async function reboot(machineFolder: string, { number }: JobRecord): Promise<void> {
  const job = await readLastJob(machineFolder);
  if (job?.number !== number) throw new Error('the job is not the machine’s newest');
  if (!job.isApplied) {
    await powerOff(machineFolder, job);
    faultpoint('qemu.reboot.after_stop');
    await saveJob(machineFolder, { ...job, isApplied: true });
  }
  faultpoint('qemu.reboot.before_start');
  await startQemu(machineFolder, await readRecord(machineFolder));
}

async function rollBack(machineFolder: string, { number, snapshotId, startsAfter }: JobRecord): Promise<void> {
  const job = await readLastJob(machineFolder);
  if (job?.number !== number || snapshotId === null) throw new Error('the job is not the machine’s newest');
  if (!job.isApplied) {
    if (!(await listInside(machineFolder)).has(snapshotId))
      throw new SnapshotMissing(`the disk has no snapshot ${snapshotId}`);
    faultpoint('qemu.rollback.before_stop');
    await stopQemu(machineFolder);
    faultpoint('qemu.rollback.before_apply');
    await applyInside(machineFolder, snapshotId);
    faultpoint('qemu.rollback.after_apply');
    await saveJob(machineFolder, { ...job, isApplied: true });
  }
  faultpoint('qemu.rollback.before_start');
  if (startsAfter) await startQemu(machineFolder, await readRecord(machineFolder));
}

async function readRecord(machineFolder: string): Promise<MachineRecord> {
  const text = await readIfThere(`${machineFolder}/machine.json`);
  if (text === null) throw new Error('the machine has no record');
  return machineRecordSchema.parse(JSON.parse(text));
}
