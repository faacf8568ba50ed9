import type { Call, Reply } from '../protocol/call';
import type { PathValues } from '../protocol/routes';
import type { VendorWorld } from './vendor-world';

/** A call by the account to which its key belongs. */
export type AccountHandler = (world: VendorWorld, account: string, call: Call, values: PathValues) => Reply;

export interface AccountRoute {
  method: string;
  pattern: string;
  handle: AccountHandler;
}

export const accountAt = (method: string, pattern: string, handle: AccountHandler): AccountRoute => ({
  method,
  pattern,
  handle,
});
