import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { EmulatorAdmin } from '@drydock/emulators';
import { uuidv7 } from 'uuidv7';
import { carryOutJob } from '../src/providers/qemu/carry-out-job';
import { qemuCompute } from '../src/providers/qemu/compute-provider.qemu';
import { readJobs } from '../src/providers/qemu/machine-folders';
import { deleteInside, findPid } from '../src/providers/qemu/qemu-process';
import { askQmp } from '../src/providers/qemu/qmp';
import type { HostRig, RigWorld } from './provider-rig';

const run = promisify(execFile);
/** The sector that holds a test's file, because the disk has no file system. */
const sector = 40_000;
const sectorBytes = 512;

/** Ends the machines in the folder and removes the folder. */
export async function clearHost(folder: string): Promise<void> {
  await killMachines(folder);
  rmSync(folder, { recursive: true, force: true });
}

export async function killMachines(folder: string): Promise<void> {
  for (const machineFolder of await machinesIn(folder)) {
    const pid = await findPid(machineFolder);
    if (pid !== null) process.kill(pid, 'SIGKILL');
  }
}

const machinesIn = async (folder: string): Promise<string[]> => {
  const names = await readdir(path.join(folder, 'machines')).catch(() => []);
  return names.map((name) => path.join(folder, 'machines', name));
};

const order = () => ({ name: uuidv7(), spec: 'small', image: 'blank', zone: 'here', labels: { 'drydock-org': 'o1' } });

/**
 * Machines with a disk and no system to boot. A job is carried out when the test changes the clock, as in an emulator.
 */
export const qemuRig = (): HostRig => ({
  name: 'qemu',
  order,
  deafOrder: order,
  hasGuest: false,
  rollbackOp: 'rollback',
  breakSnapshot: async (admin, machineId, snapshotId) => void (await admin.call('break', machineId, snapshotId)),
  protect: null,
  lockHidden: async (admin, machineId, isLocked) => void (await admin.call(isLocked ? 'hold' : 'release', machineId)),
  vanish: async (admin, machineId) => void (await admin.call('vanish', machineId)),
  open: () => openHost(() => undefined),
});

export async function openHost(beginWork: (machineFolder: string) => void): Promise<RigWorld> {
  const root = mkdtempSync(path.join(tmpdir(), 'drydock-qemu-'));
  const [blank, large] = [path.join(root, 'blank.qcow2'), path.join(root, 'large.qcow2')];
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', blank, '64M']);
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', large, '2G']);
  const folderOf = (account: string): string => path.join(root, account);
  const open: RigWorld['open'] = ({ account = 'one' } = {}) =>
    qemuCompute({
      folder: folderOf(account),
      zone: 'here',
      images: { blank: { disk: blank }, large: { disk: large } },
      sizes: { small: { cpus: 1, memoryMb: 64, diskGb: 1 } },
      beginWork,
    });
  return {
    admin: hostAdmin(folderOf('one')),
    driver: open(),
    open,
    restart: () => killMachines(folderOf('one')),
    url: () => root,
    close: async () => {
      await clearHost(folderOf('one'));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function hostAdmin(folder: string): EmulatorAdmin {
  const of = (machineId: string): string => path.join(folder, 'machines', machineId);
  const notHere = async (): Promise<never> => {
    throw new Error('there is no socket between us and a host: nothing goes wrong on it');
  };
  return {
    orderFault: notHere,
    readCalls: notHere,
    clearFaults: async () => undefined,
    changeClock: async () => {
      for (const machineFolder of await machinesIn(folder)) await carryOutJob(machineFolder);
    },
    readLedger: async () => {
      const entries = [];
      for (const machineFolder of await machinesIn(folder))
        for (const { number, kind, reference, begunAt } of await readJobs(machineFolder))
          entries.push({
            ...{
              seq: number,
              time: begunAt,
              project: 'one',
              resource: path.basename(machineFolder),
              op: kind,
              action_id: String(number),
            },
            ...{ detail: '', fence: '0' as const, workflow_id: reference, outcome: 'accepted' as const },
          });
      return entries;
    },
    readDisk: async (machineId) => {
      const out = path.join(of(machineId), 'sector');
      const [from, to] = ['if=disk.qcow2', 'of=sector'];
      const args = [
        'dd',
        '-U',
        '-f',
        'qcow2',
        '-O',
        'raw',
        `bs=${sectorBytes}`,
        `skip=${sector}`,
        `count=${sector + 1}`,
        from,
        to,
      ];
      await run('qemu-img', args, { cwd: of(machineId) });
      return (await readFile(out)).subarray(0, sectorBytes).toString().replace(/\0+$/, '');
    },
    writeDisk: async (machineId, _file, content) => {
      const source = path.join(of(machineId), 'sector');
      await writeFile(source, Buffer.alloc(sectorBytes, 0).fill(content, 0, content.length));
      for (const line of [`write -s ${source} ${sector * sectorBytes} ${sectorBytes}`, 'flush'])
        await askQmp({
          ...{
            machineFolder: of(machineId),
            monitor: 'work.sock',
            command: 'human-monitor-command',
            deadlineMs: 20_000,
          },
          args: { 'command-line': `qemu-io disk "${line}"` },
        });
    },
    call: async (what, machineId, detail) => {
      const held = path.join(of(machineId), 'held');
      if (what === 'break') await deleteInside(of(machineId), String(detail));
      if (what === 'hold') await writeFile(held, '');
      if (what === 'release') await rm(held);
      if (what === 'vanish') await clearMachine(of(machineId));
    },
  };
}

async function clearMachine(machineFolder: string): Promise<void> {
  const pid = await findPid(machineFolder);
  if (pid !== null) process.kill(pid, 'SIGKILL');
  await rm(machineFolder, { recursive: true, force: true });
}
