import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { QemuImage } from '../src/providers/qemu/compute-provider.qemu';

/** The folder in which `qemu-guest/build.sh` puts the guest, in continuous integration and by hand. */
const guestFolder = path.resolve(__dirname, '../../../.data/qemu-guest');
const guestFile = (name: string): string => path.join(guestFolder, name);

/** A small operating system that runs the commands from its serial console. */
export const guestImage: QemuImage = {
  disk: guestFile('disk.qcow2'),
  kernel: guestFile('vmlinuz'),
  initrd: guestFile('initrd'),
  append: 'console=ttyS0 quiet panic=-1',
};

const isInstalled = (tool: string): boolean => spawnSync(tool, ['--version']).status === 0;

const tools = ['qemu-system-x86_64', 'qemu-img', 'flock'];

/** Whether machines can be run here. */
export const hasQemu = (): boolean => tools.every(isInstalled);

/** Whether this computer can also boot the guest. */
export const hasGuest = (): boolean => hasQemu() && existsSync(guestFile('vmlinuz'));

/** The title of a suite that needs machines. It names the programs that this computer lacks. */
export function needsQemu(title: string): string {
  const missing = tools.filter((tool) => !isInstalled(tool));
  return missing.length === 0 ? title : `${title} (needs ${missing.join(', ')})`;
}

/** The title of a suite that needs the guest too. */
export const needsGuest = (title: string): string =>
  !hasQemu() || hasGuest()
    ? needsQemu(title)
    : `${title} (needs the guest of services/compute/qemu-guest/build.sh in .data/qemu-guest)`;
