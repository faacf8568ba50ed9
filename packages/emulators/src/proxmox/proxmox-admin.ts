import { z } from 'zod';
import { parseAdmin } from '../protocol/admin-routes';
import { emptyReply, jsonReply, Refusal } from '../protocol/call';
import { type PathValues, pathValue, type Route, routeAt } from '../protocol/routes';
import type { Vm } from './proxmox-state';
import type { ProxmoxWorld } from './proxmox-world';
import { startTask } from './start-task';

const vmChange = z
  .strictObject({
    status: z.enum(['running', 'stopped']),
    qmpstatus: z.string(),
    lock: z.string().nullable(),
    isProtected: z.boolean(),
    node: z.string(),
    isTemplate: z.boolean(),
    addresses: z.array(z.string()).nullable(),
  })
  .partial();
const nodeChange = z.strictObject({ isDown: z.boolean() });
const snapshotChange = z.strictObject({ snapstate: z.string().nullable(), parent: z.string().nullable() }).partial();

/**
 * Routes for events that Drydock does not cause: lost power, locks of others, migrations, snapshots that never get
 * ready, VMs that vanish, nodes that fail, work of staff by hand.
 */
export const proxmoxAdminRoutes = (world: ProxmoxWorld): Route[] => {
  const missing = (): Refusal => new Refusal(jsonReply(404, { error: 'no such object' }));
  const vmAt = (values: PathValues): Vm => {
    const vm = world.state.vms.find(({ vmid }) => String(vmid) === pathValue(values, 'id'));
    if (vm === undefined) throw missing();
    return vm;
  };
  return [
    routeAt('PATCH', '/emulator/servers/:id', (call, values) => {
      Object.assign(vmAt(values), parseAdmin(vmChange, call));
      world.save();
      return emptyReply(204);
    }),
    routeAt('DELETE', '/emulator/servers/:id', (_call, values) => {
      world.state.vms = world.state.vms.filter((vm) => vm !== vmAt(values));
      world.save();
      return emptyReply(204);
    }),
    routeAt('POST', '/emulator/servers/:id/snapshots/:name/rollback', (_call, values) => {
      startTask(world, vmAt(values), {
        type: 'qmrollback',
        account: null,
        snapname: pathValue(values, 'name'),
        lock: 'rollback',
      });
      return emptyReply(204);
    }),
    routeAt('PATCH', '/emulator/nodes/:node', (call, values) => {
      if (parseAdmin(nodeChange, call).isDown) world.downNodes.add(pathValue(values, 'node'));
      else world.downNodes.delete(pathValue(values, 'node'));
      return emptyReply(204);
    }),
    routeAt('PATCH', '/emulator/servers/:id/snapshots/:name', (call, values) => {
      const snapshot = vmAt(values).snapshots.find(({ name }) => name === pathValue(values, 'name'));
      if (snapshot === undefined) throw missing();
      Object.assign(snapshot, parseAdmin(snapshotChange, call));
      world.save();
      return emptyReply(204);
    }),
  ];
};
