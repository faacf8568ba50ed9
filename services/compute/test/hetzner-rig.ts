import { createHetznerEmulator, usualActionSeconds } from '@drydock/emulators';
import { uuidv7 } from 'uuidv7';
import { hetznerCompute } from '../src/providers/hetzner/compute-provider.hetzner';
import type { Rig } from './provider-rig';

const tokens = { one: 'token-of-one', other: 'token-of-another', nobody: 'token-of-nobody' };

const order = () => ({
  name: uuidv7(),
  spec: 'cpx11',
  image: 'debian-12',
  zone: 'nbg1',
  labels: { 'drydock-org': 'o1' },
});

export const hetznerRig = (callsPerHour = 3_600): Rig => ({
  name: 'hetzner',
  create: (stateDir, adminToken) =>
    createHetznerEmulator({
      stateDir,
      adminToken,
      tokens: new Map([
        ['one', tokens.one],
        ['other', tokens.other],
      ]),
      clockScale: 1,
      callsPerHour,
      actionSeconds: usualActionSeconds,
    }),
  driver: (url, { deadlineMs = 2_000, account = 'one' }) =>
    hetznerCompute({ baseUrl: `${url}/v1`, token: tokens[account], deadlineMs, lostAnswerSeconds: 1 }),
  order,
  deafOrder: () => ({ ...order(), labels: { 'emulator.deaf': '' } }),
  hasGuest: true,
  rollbackCall: { method: 'POST', path: '/actions/rebuild$' },
  readMachineCall: { method: 'GET', path: '/v1/servers/\\d+$' },
  readActionCall: { method: 'GET', path: '/v1/actions$' },
  createPath: '/v1/servers$',
  powerPath: '/actions/(poweroff|reset)$',
  snapshotPath: '/actions/create_image$',
  rollbackOp: 'rebuild_server',
  foreignAction: { 'actions.0.resources': [{ id: 7, type: 'server' }] },
  breakSnapshot: async (admin, _machineId, snapshotId) =>
    void (await admin.call('PATCH', `images/${snapshotId}`, { status: 'creating' })),
  protect: async (admin, machineId) => void (await admin.call('PATCH', `servers/${machineId}`, { isProtected: true })),
  lockHidden: async (admin, machineId, isLocked) =>
    void (await admin.call('PATCH', `servers/${machineId}`, { isHiddenLocked: isLocked })),
  vanish: async (admin, machineId) => void (await admin.call('DELETE', `servers/${machineId}`)),
});
