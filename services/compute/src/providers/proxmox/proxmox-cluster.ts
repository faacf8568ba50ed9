import { z } from 'zod';
import type { ProviderApi } from '../http/provider-api';
import { vmidOf } from './order-note';
import { dataOf, type Resource, resourceSchema } from './proxmox-shapes';

/** Whether the text is a number of a VM. Any other text names nothing, and is not sent. */
export const isVmid = (id: string): boolean => /^[1-9]\d{2,8}$/.test(id);

/** All VMs that the token may see, each with its present node. */
export async function listVms(api: ProviderApi, signal?: AbortSignal): Promise<Resource[]> {
  const resources = await api.read(['cluster', 'resources'], [['type', 'vm']], dataOf(z.array(resourceSchema)), signal);
  return (resources ?? []).filter(({ type }) => type === 'qemu');
}

export async function findVm(api: ProviderApi, machineId: string, signal?: AbortSignal): Promise<Resource | null> {
  if (!isVmid(machineId)) return null;
  return (await listVms(api, signal)).find(({ vmid }) => String(vmid) === machineId) ?? null;
}

/**
 * The VM of an order. Until its clone is complete it has only its number and its lock, and no name. So the number and
 * the lock find a clone whose answer was lost.
 */
export async function findOrderedVm(api: ProviderApi, name: string, signal?: AbortSignal): Promise<Resource | null> {
  const isOrdered = (vm: Resource): boolean => vm.name === name || (vm.lock === 'clone' && vm.vmid === vmidOf(name));
  return (await listVms(api, signal)).find(isOrdered) ?? null;
}
