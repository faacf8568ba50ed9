import path from 'node:path';
import { type ProgramPlan, type Surroundings, urlOf } from './program';

/** Accounts of the cluster: neither mode sees the other's machines. */
type EmulatorAccount = 'live' | 'sandbox';

const secretOf = (account: EmulatorAccount, around: Surroundings): string => around.derive(`proxmox-stand-in:${account}`);
const readerSecretOf = (account: EmulatorAccount, around: Surroundings): string => around.derive(`proxmox-stand-in:${account}:reader`);

/** As a range of this account is configured with: by a token that may change machines, or by one that can only look at them. */
export const proxmoxApiOf = (account: EmulatorAccount, around: Surroundings, role: 'driver' | 'reader') => ({
  url: `${urlOf(around, 'proxmox-stand-in')}/api2/json`,
  token:
    role === 'driver' ? `${account}@pve!drydock=${secretOf(account, around)}` : `${account}@pve!reader=${readerSecretOf(account, around)}`,
});

/** A cluster of two nodes with templates to clone. What takes minutes there takes seconds here. */
export const proxmoxEmulatorProgram: ProgramPlan = {
  name: 'proxmox-stand-in',
  entry: 'packages/emulators/dist/proxmox/proxmox-server.js',
  tier: 'host',
  environment: (around) => ({
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 'proxmox'),
    API_TOKENS: `live=${secretOf('live', around)},sandbox=${secretOf('sandbox', around)}`,
    API_READER_TOKENS: `live=${readerSecretOf('live', around)},sandbox=${readerSecretOf('sandbox', around)}`,
    ADMIN_TOKEN: around.derive('proxmox-stand-in:admin'),
    TASK_SPEED: '4',
  }),
};
