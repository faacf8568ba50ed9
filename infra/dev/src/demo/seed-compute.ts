import { emulatorAdmin } from '@drydock/emulators';
import { z } from 'zod';
import type { Api } from './api';
import { makeAnew } from './make-anew';
import { poll } from './poll';
import type { Seed, SeedContext } from './seed';

const serverSchema = z.looseObject({ id: z.string(), created_at: z.string(), status: z.string(), message: z.string() });
const snapshotsSchema = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), description: z.string() })) });
const workflowsSchema = z.looseObject({ data: z.array(z.looseObject({ kind: z.string(), status: z.string() })) });
const machinesSchema = z.object({ servers: z.array(z.object({ id: z.int() })) });

type DemoServer = {
  id: string;
  snapshot_ids: string[];
  unready_snapshot_id: string;
  disk_url: string;
  disk_token: string;
};

interface Ordered {
  api: Api;
  name: string;
  cloud: { url: string; token: string };
}

/**
 * Waits until the server's newest workflow has succeeded. The status of the server is not enough, because a workflow
 * can end a moment after the server is ready.
 */
const atRest = ({ api, name }: Ordered, serverId: string): Promise<unknown> =>
  poll(`Working on ${name}`, async () => {
    const [newest] = workflowsSchema.parse((await api(`/v1/compute/servers/${serverId}/workflows?limit=1`)).body).data;
    if (newest?.status === 'failed' || newest?.status === 'needs_attention')
      throw new Error(`${newest.kind} of ${name} failed; see the logs folder`);
    return newest?.status === 'succeeded' ? newest : null;
  });

async function takeSnapshot(ordered: Ordered, serverId: string, description: string): Promise<string> {
  const { api, name } = ordered;
  const path = `/v1/compute/servers/${serverId}/snapshots`;
  await api(path, { method: 'POST', body: { description }, idempotencyKey: `demo-${name}-${description}` });
  await atRest(ordered, serverId);
  const taken = snapshotsSchema
    .parse((await api(path)).body)
    .data.find((snapshot) => snapshot.description === description);
  if (taken === undefined) throw new Error(`There is no snapshot ${description} of ${name}`);
  return taken.id;
}

/**
 * Returns the URL at which the emulator gives access to the machine's disk. The owner of a real server would use ssh.
 */
async function diskOf({ cloud }: Ordered, serverId: string): Promise<string> {
  const answer = await fetch(`${cloud.url}/v1/servers?name=${serverId}`, {
    headers: { authorization: `Bearer ${cloud.token}` },
  });
  const [machine] = machinesSchema.parse(await answer.json()).servers;
  return `${cloud.url}/emulator/servers/${machine?.id}/disk`;
}

/** Creates a server whose disk has changed after its first snapshot. Its third snapshot never becomes ready. */
async function seedServer(ordered: Ordered, admin: SeedContext['hetzner']): Promise<DemoServer> {
  const { api, name, cloud } = ordered;
  const body = { name, deploy_target: 'fsn', plan_code: 'small', image: 'ubuntu-24.04', zone: 'fsn1' };
  const readServer = async (serverId: string) =>
    serverSchema.parse((await api(`/v1/compute/servers/${serverId}`)).body);
  const { id } = await makeAnew(
    `demo-server-${name}`,
    async (idempotencyKey) =>
      serverSchema.parse((await api('/v1/compute/servers', { method: 'POST', body, idempotencyKey })).body),
    async (made) => {
      const { status, created_at } = await readServer(made.id);
      return status === 'failed' ? created_at : null;
    },
  );
  await poll(`Ordering ${name}`, async () => {
    const { status, message } = await readServer(id);
    if (status === 'failed') throw new Error(`${name} could not be ordered (${message}); see the logs folder`);
    return status === 'active' ? status : null;
  });
  await atRest(ordered, id);
  const diskUrl = await diskOf(ordered, id);
  const write = (content: string) =>
    fetch(`${diskUrl}/srv/notes.txt`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${cloud.token}` },
      body: content,
    });
  await write('written before the first snapshot\n');
  const first = await takeSnapshot(ordered, id, 'before');
  await write('written after the first snapshot\n');
  const second = await takeSnapshot(ordered, id, 'after');
  const unready = await takeSnapshot(ordered, id, 'unready');
  await emulatorAdmin(admin.url, admin.token).call('PATCH', `images/${unready}`, { status: 'creating' });
  return {
    id,
    snapshot_ids: [first, second],
    unready_snapshot_id: unready,
    disk_url: diskUrl,
    disk_token: cloud.token,
  };
}

export const computeSeed: Seed = {
  title: 'Ordering four servers and taking snapshots of them',
  fields: ['servers', 'sandbox_servers'],
  seed: async ({ api, hetzner, keep }) => {
    const seedPair = (key: 'live_key' | 'sandbox_key', token: string): Promise<DemoServer[]> =>
      Promise.all(
        ['Harbour', 'Lighthouse'].map((name) =>
          seedServer({ api: api(key), name, cloud: { url: hetzner.url, token } }, hetzner),
        ),
      );
    const [servers, sandboxServers] = await Promise.all([
      seedPair('live_key', hetzner.projectTokens.live),
      seedPair('sandbox_key', hetzner.projectTokens.sandbox),
    ]);
    keep({ servers, sandbox_servers: sandboxServers });
  },
};
