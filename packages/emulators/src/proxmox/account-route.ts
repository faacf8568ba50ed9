import type { Call, Reply } from '../protocol/call';
import type { PathValues } from '../protocol/routes';
import type { ProxmoxWorld } from './proxmox-world';

/** A call by the account to which its API token belongs. */
export type AccountHandler = (world: ProxmoxWorld, account: string, call: Call, values: PathValues) => Reply;

export interface AccountRoute {
  method: string;
  pattern: string;
  handle: AccountHandler;
}

export const apiAt = (method: string, path: string, handle: AccountHandler): AccountRoute => ({
  method,
  pattern: `/api2/json${path}`,
  handle,
});
