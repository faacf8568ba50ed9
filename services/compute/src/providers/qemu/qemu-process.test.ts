/** @processes */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { hasQemu, needsQemu } from '../../../test/qemu-host';
import { chooseAccelerator } from './qemu-process';

const folder = mkdtempSync(path.join(tmpdir(), 'drydock-accelerator-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns a command that stands for QEMU. Under KVM it runs the shell command `kvm`, otherwise the real QEMU. */
function computerWith(kvm: string): string {
  const command = path.join(folder, 'qemu');
  writeFileSync(command, `#!/bin/sh\ncase "$*" in *"-accel kvm"*) ${kvm} ;; *) exec qemu-system-x86_64 "$@" ;; esac\n`);
  chmodSync(command, 0o755);
  return command;
}

const describeQemu = hasQemu() ? describe : describe.skip;

describeQemu(needsQemu('a machine runs under'), () => {
  it.each([
    ['emulation, where KVM starts and its guest hangs', 'exec sleep 600', 'tcg'],
    ['emulation, where there is no KVM', 'exit 1', 'tcg'],
    ['KVM, where its guest has counted before an emulated one', 'exit 3', 'kvm'],
  ] as const)('%s', async (_, kvm, accelerator) => {
    expect(await chooseAccelerator(folder, computerWith(kvm))).toBe(accelerator);
  });
});
