import type { ServerPowerState, ServerStatus } from '@drydock/contracts/compute/compute-servers';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';

/** The organisation and the mode that a look-up is limited to. */
export interface Owner {
  orgId: string;
  mode: Mode;
}

export interface Server extends Owner {
  id: string;
  name: string;
  deployTarget: string;
  planCode: string;
  provider: string;
  /** The provider's id; null until it has accepted the order. */
  machineId: string | null;
  spec: string;
  zone: string;
  image: string;
  status: ServerStatus;
  message: string;
  vendorStatus: string;
  powerState: ServerPowerState;
  addresses: string[];
  optimisation: string;
  operable: boolean;
  suspended: boolean;
  suspensionReason: string;
  loginUser: string;
  blueprint: string;
  clusterId: string;
  clusterRole: string;
  termMonths: number | null;
  currency: string;
  amountMinor: number;
  subscriptionId: string | null;
  activeSince: Date | null;
  vanishedAt: Date | null;
  metadata: Metadata;
  createdAt: Date;
}
