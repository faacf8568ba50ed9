/**
 * Boots a guest system.
 *
 * @tier long
 * @processes
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ComputeServerView } from '@drydock/contracts/compute/compute-servers';
import type { ServerSnapshot } from '@drydock/contracts/compute/compute-snapshots';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { type ComputeWorld, openWorld } from '../test/compute-world';
import { type GuestConsole, openConsole } from '../test/guest-console';
import { guestImage, hasGuest, needsGuest } from '../test/qemu-host';
import { clearHost } from '../test/qemu-rig';

const folder = mkdtempSync(path.join(tmpdir(), 'drydock-range-'));
const range = {
  ...{
    driver: 'qemu',
    folder,
    images: { guest: guestImage },
    sizes: { small: { cpus: 1, memory_mb: 128, disk_gb: 1 } },
  },
  ...{ currency: 'EUR', specs: { small: { hour_minor: 1, month_minor: 300 } } },
};
const servers = '/v1/compute/servers';
let world: ComputeWorld;
const consoles: GuestConsole[] = [];
const tokens = createFaultTokens();
let isOver = false;

/** Starts a worker, and a new worker whenever the last worker dies. */
function hire(): void {
  world.spawnWorker({ DRYDOCK_FAULTS: tokens.folder }).once('exit', () => {
    if (!isOver) hire();
  });
}

const describeGuest = hasGuest() ? describe : describe.skip;

describeGuest(needsGuest('a deploy target on this host'), () => {
  beforeAll(async () => {
    world = await openWorld('postgres', callerOf(), { more: { here: range } });
    hire();
  });
  afterAll(async () => {
    isOver = true;
    for (const { close } of consoles) close();
    await world.endWorkers();
    await clearHost(folder);
    await world.close();
    tokens.remove();
  });

  const guestOf = async (serverId: string): Promise<GuestConsole> => {
    const guest = await openConsole(path.join(folder, 'machines', serverId));
    consoles.push(guest);
    return guest;
  };
  const read = async (serverId: string) =>
    (await world.api.call('GET', `${servers}/${serverId}`)).json as ComputeServerView;

  it('orders a machine, takes a snapshot and rolls back, although one worker is killed before the send and the next one after it', async () => {
    const body = { name: 'Web', deploy_target: 'here', spec: 'small', image: 'guest', zone: 'local' };
    const ordered = await world.api.call('POST', servers, { body });
    expect(await ended(world, ordered.headers['location'])).toMatchObject({ status: 'succeeded' });
    const { id } = ordered.json as ComputeServerView;
    expect(await read(id)).toMatchObject({
      provider: 'qemu',
      status: 'active',
      operable: true,
      power_state: 'on',
      addresses: [],
    });
    const guest = await guestOf(id);
    await guest.run('echo before > /srv/state; sync');

    const taken = await world.api.call('POST', `${servers}/${id}/snapshots`, {
      body: { description: 'before the update' },
    });
    expect(await ended(world, taken.headers['location'])).toMatchObject({ status: 'succeeded' });
    const listed = (await world.api.call('GET', `${servers}/${id}/snapshots`)).json as { data: ServerSnapshot[] };
    expect(listed.data).toMatchObject([{ description: 'before the update', status: 'available', size_gb: null }]);
    await guest.run('echo after > /srv/state; sync');

    // Two workers die: the first between the note of the send and the claim of the job, the second between the claim
    // and the record of the step's result.
    for (const point of ['qemu.rollback.before_claim', 'roll_back_server.send.after_effect']) tokens.arm(point, 'kill');
    const rollback = await world.api.call('POST', `${servers}/${id}/snapshots/${listed.data[0]?.id}`);
    expect([rollback.status, (await read(id)).operable]).toEqual([202, false]);
    expect(await ended(world, rollback.headers['location'])).toMatchObject({ status: 'succeeded' });
    expect(tokens.left()).toEqual([]);
    expect(await read(id)).toMatchObject({
      status: 'active',
      operable: true,
      power_state: 'on',
      vendor_status: 'running',
    });
    expect(await (await guestOf(id)).run('cat /srv/state')).toBe('before');
  });

  it('refuses an image that nobody configured', async () => {
    const ordered = await world.api.call('POST', servers, {
      body: { name: 'Web', deploy_target: 'here', spec: 'small', image: 'none', zone: 'local' },
    });
    expect(await ended(world, ordered.headers['location'])).toMatchObject({
      status: 'failed',
      error: { code: 'order_refused' },
    });
  });
});
