import { createProxmoxEmulator, usualTaskSeconds } from '@drydock/emulators';
import { uuidv7 } from 'uuidv7';
import { proxmoxCompute } from '../src/providers/proxmox/compute-provider.proxmox';
import type { Rig } from './provider-rig';

const secrets = { one: 'secret-of-one', other: 'secret-of-another', nobody: 'secret-of-nobody' };

const order = () => ({
  name: uuidv7(),
  spec: 'small',
  image: 'debian-12',
  zone: 'pve2',
  labels: { 'drydock-org': 'o1' },
});

export const proxmoxRig = (): Rig => ({
  name: 'proxmox',
  create: (stateDir, adminToken) =>
    createProxmoxEmulator({
      stateDir,
      adminToken,
      tokens: new Map([
        ['one', secrets.one],
        ['other', secrets.other],
      ]),
      clockScale: 1,
      taskSeconds: usualTaskSeconds,
    }),
  driver: (url, { deadlineMs = 2_000, account = 'one' }) =>
    proxmoxCompute({
      baseUrl: `${url}/api2/json`,
      token: `${account}@pve!drydock=${secrets[account]}`,
      sizes: { small: { cores: 1, memoryMb: 1_024, diskGb: 10 }, large: { cores: 4, memoryMb: 8_192, diskGb: 80 } },
      templates: { 'debian-12': 9_000, 'debian-12-zfs': 9_001 },
      deadlineMs,
      lostAnswerSeconds: 1,
    }),
  order,
  deafOrder: () => ({ ...order(), labels: { 'emulator.fail': 'qmshutdown' } }),
  hasGuest: true,
  rollbackCall: { method: 'POST', path: '/rollback$' },
  readMachineCall: { method: 'GET', path: '/status/current$' },
  readActionCall: { method: 'GET', path: '/tasks/[^/]+/status$' },
  createPath: '/clone$',
  powerPath: '/status/(stop|reset)$',
  snapshotPath: '/snapshot$',
  rollbackOp: 'qmrollback',
  foreignAction: { 'data.id': '7' },
  breakSnapshot: async (admin, machineId, snapshotId) =>
    void (await admin.call('PATCH', `servers/${machineId}/snapshots/${snapshotId}`, { snapstate: 'prepare' })),
  protect: async (admin, machineId) => void (await admin.call('PATCH', `servers/${machineId}`, { isProtected: true })),
  lockHidden: async (admin, machineId, isLocked) =>
    void (await admin.call('PATCH', `servers/${machineId}`, { lock: isLocked ? 'backup' : null })),
  vanish: async (admin, machineId) => void (await admin.call('DELETE', `servers/${machineId}`)),
});
