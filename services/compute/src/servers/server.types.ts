import type { ServerPowerState, ServerStatus } from '@drydock/contracts/compute/compute-servers';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access';
import type { WorkTarget } from '@drydock/workflow/http';

/** The key by which workflows on a server exclude each other. Only one workflow at a time works on a server. */
export const serverResourceKey = (serverId: string): string => `server:${serverId}`;

export const serverSubject = (serverId: string): { type: 'server'; id: string } => ({ type: 'server', id: serverId });

/** The path of the server, by which answers and the audit log name it. */
export const serverPath = (serverId: string): string => `/v1/compute/servers/${serverId}`;

export const onServer = (serverId: string): WorkTarget => ({
  resourceKey: serverResourceKey(serverId),
  subject: serverSubject(serverId),
  path: serverPath(serverId),
});

/** The organisation and the mode of a server. A query finds only servers of this organisation in this mode. */
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
  /** The provider's id of the machine; null until the provider has accepted the order. */
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
  /** Whether the order had SSH keys, which also open the machine after a rollback or rebuild. */
  hasSshKeys: boolean;
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

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
