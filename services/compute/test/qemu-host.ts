import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { QemuImage } from '../src/providers/qemu/qemu-options';

/** Where `qemu-guest/build.sh` is told to put the guest, by continuous integration as by hand. */
const guestFolder = path.resolve(__dirname, '../../../.data/qemu-guest');
const guestFile = (name: string): string => path.join(guestFolder, name);

/** A whole system of a megabyte, which runs what its serial console is told. */
export const guestImage: QemuImage = {
  disk: guestFile('disk.qcow2'),
  kernel: guestFile('vmlinuz'),
  initrd: guestFile('initrd'),
  append: 'console=ttyS0 quiet panic=-1',
};

const isInstalled = (tool: string): boolean => spawnSync(tool, ['--version']).status === 0;

/** Whether machines can be run here; says so when not. */
export function hasQemu(): boolean {
  const has = ['qemu-system-x86_64', 'qemu-img', 'flock'].every(isInstalled);
  if (!has) process.stderr.write('No qemu-system-x86_64 and qemu-img on the PATH: the qemu provider is not tested\n');
  return has;
}

/** Whether they can boot the guest as well. */
export function hasGuest(): boolean {
  const has = hasQemu();
  if (has && existsSync(guestFile('vmlinuz'))) return true;
  if (has) process.stderr.write('No guest in .data/qemu-guest (services/compute/qemu-guest/build.sh): no real machine is booted\n');
  return false;
}
