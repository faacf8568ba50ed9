import path from 'node:path';
import { type ProgramPlan, type Surroundings, urlOf } from './program';

/** Accounts of the cluster: neither mode sees the other's machines. */
type StandInAccount = 'live' | 'sandbox';

const secretOf = (account: StandInAccount, around: Surroundings): string => around.derive(`proxmox-stand-in:${account}`);

/** As a range of this account is configured with. */
export const proxmoxApiOf = (account: StandInAccount, around: Surroundings) => ({
  url: `${urlOf(around, 'proxmox-stand-in')}/api2/json`,
  token: `${account}@pve!drydock=${secretOf(account, around)}`,
});

/** A cluster of two nodes with templates to clone. What takes minutes there takes seconds here. */
export const proxmoxStandInProgram: ProgramPlan = {
  name: 'proxmox-stand-in',
  entry: 'packages/stand-ins/dist/proxmox/proxmox-server.js',
  tier: 'host',
  environment: (around) => ({
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 'proxmox'),
    API_TOKENS: `live=${secretOf('live', around)},sandbox=${secretOf('sandbox', around)}`,
    ADMIN_TOKEN: around.derive('proxmox-stand-in:admin'),
    TASK_SPEED: '4',
  }),
};
