import type { MachineRecord } from './qemu-records';

export type Accelerator = 'kvm' | 'tcg';

/** The drive's name in QEMU's monitor. */
export const driveName = 'disk';

/**
 * QEMU's arguments for a machine, to be run in the machine's folder: no devices but those listed, no network, no new
 * processes and no privileges. A guest that powers off leaves QEMU paused. So it can be distinguished from a crash.
 */
export function commandLine({ cpus, memoryMb, system }: MachineRecord, accelerator: Accelerator): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...['-machine', 'q35', '-accel', accelerator, '-cpu', 'max', '-smp', String(cpus), '-m', String(memoryMb)],
    ...[
      '-drive',
      `id=${driveName},if=none,file=disk.qcow2,format=qcow2`,
      '-device',
      `virtio-blk-pci,drive=${driveName}`,
    ],
    ...['-chardev', 'socket,id=console,path=console.sock,server=on,wait=off', '-serial', 'chardev:console'],
    ...['-qmp', 'unix:work.sock,server=on,wait=off', '-qmp', 'unix:look.sock,server=on,wait=off'],
    ...['-pidfile', 'qemu.pid', '-action', 'shutdown=pause'],
    ...option('-kernel', system.kernel),
    ...option('-initrd', system.initrd),
    ...option('-append', system.append),
  ];
}

const option = (name: string, value: string | undefined): string[] => (value === undefined ? [] : [name, value]);
