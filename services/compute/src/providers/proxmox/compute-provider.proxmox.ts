import type { Closing, ComputeDriver, ComputeReader } from '../compute-provider';
import { openProviderApi, type ReadPath } from '../http/provider-api';
import { sendChange } from './proxmox-changes';
import { findChange, prepareChange } from './proxmox-find';
import type { ProxmoxOptions } from './proxmox-options';
import { proxmoxReader } from './proxmox-reader';
import { refusalIn } from './proxmox-tasks';

/** The time is ample, because a task is in its node's list as soon as it has been forked. */
const lostAnswerSecondsUsual = 30;

/**
 * The part of the cluster on which a read depends. It is the node, because other nodes may work while one is
 * unreachable. It is null for a read of the guest agent, because that answer depends on the owner of the machine and
 * says nothing about the cluster.
 */
const partOf = ([collection, node, , , agent]: ReadPath): string | null =>
  collection !== 'nodes' ? '' : agent === 'agent' ? null : String(node);

const openApi = ({ token, ...options }: ProxmoxOptions) =>
  openProviderApi({ ...options, headers: { authorization: `PVEAPIToken=${token}` }, refusalIn, partOf });

/** The reading part of one Proxmox VE cluster, for handlers. It sees what the API token may see. */
export function proxmoxComputeReader(options: ProxmoxOptions): ComputeReader & Closing {
  const api = openApi(options);
  return { ...proxmoxReader(api), close: () => api.close() };
}

/** One Proxmox VE cluster with its changes, for workers. */
export function proxmoxCompute(options: ProxmoxOptions): ComputeDriver & Closing {
  const api = openApi(options);
  const reader = proxmoxReader(api);
  return {
    ...reader,
    lostAnswerSeconds: options.lostAnswerSeconds ?? lostAnswerSecondsUsual,
    prepare: (change, signal) => prepareChange(api, reader, change, signal),
    send: (change, checkpoint, signal) => sendChange({ api, reader, options }, change, checkpoint, signal),
    find: (change, checkpoint, signal) => findChange({ api, reader, options }, change, checkpoint, signal),
    close: () => api.close(),
  };
}
