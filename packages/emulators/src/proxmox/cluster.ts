import type { Vm } from './proxmox-state';

export const nodeNames = ['pve1', 'pve2'];

/**
 * The storages of the cluster. No answer says which of them can only roll back to the newest snapshot, so the driver
 * must know that itself.
 */
export const storages = [
  { storage: 'local', type: 'dir', content: 'iso,vztmpl,backup' },
  { storage: 'local-lvm', type: 'lvmthin', content: 'images,rootdir' },
  { storage: 'local-zfs', type: 'zfspool', content: 'images,rootdir' },
];

const template = (vmid: number, name: string, storage: string): Vm => ({
  ...{
    vmid,
    account: null,
    node: 'pve1',
    name,
    isTemplate: true,
    status: 'stopped',
    qmpstatus: 'stopped',
    lock: null,
    isProtected: false,
    description: '',
  },
  ...{ cores: 1, memoryMb: 1_024, diskGb: 10, storage, addresses: null, parent: null, snapshots: [] },
  disk: { '/etc/os-release': `NAME=${name}\n` },
});

export const templates = (): Vm[] => [
  template(9_000, 'debian-12', 'local-lvm'),
  template(9_001, 'debian-12-zfs', 'local-zfs'),
];
