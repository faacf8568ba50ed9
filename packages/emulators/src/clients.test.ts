/** @processes */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { closeServer, listen } from '@drydock/service/http';
import { ActionsService, ImagesService, OpenAPI, ServerActionsService, ServersService } from 'hetzner-sdk-ts';
import { proxmoxApi } from 'proxmox-api';
import { emulatorAdmin } from './admin-client';
import { createHetznerEmulator } from './hetzner/hetzner-emulator';
import { fasterActions } from './hetzner/hetzner-world';
import { createProxmoxEmulator } from './proxmox/proxmox-emulator';
import { fasterTasks } from './proxmox/proxmox-world';
import { type RunningS3, startS3 } from './s3/s3-emulator';

/*
 * Drydock's drivers and emulators could share a misunderstanding of a protocol. So clients of other authors call the
 * emulators here. Clients from npm always run. Clients from Debian run where they are installed.
 */

const run = promisify(execFile);
const debianPython = '/usr/bin/python3';
const hasProgram = (name: string): boolean => spawnSync(name, ['version']).error === undefined;
const hasModule = (name: string): boolean => spawnSync(debianPython, ['-c', `import ${name}`]).status === 0;
const python = async (script: string): Promise<unknown> => JSON.parse((await run(debianPython, ['-c', script])).stdout);

/** Runs the test if its client is installed. Otherwise the title of the skipped test names the missing client. */
function itWith(client: string, isInstalled: boolean, name: string, test: () => Promise<void>): void {
  (isInstalled ? it : it.skip)(isInstalled ? name : `${name} (needs ${client})`, test);
}

const token = '12345678-1234-1234-1234-1234567890ab';
let folder: string;
/** The environment of the clients, without settings of this machine. */
let env: { PATH: string | undefined; HOME: string };
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'drydock-clients-'));
  env = { PATH: process.env['PATH'], HOME: folder };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the Hetzner emulator serves a machine’s whole life', () => {
  let server: Server;
  let endpoint: string;
  beforeAll(async () => {
    server = createHetznerEmulator({
      stateDir: path.join(folder, 'hetzner'),
      tokens: new Map([['live', token]]),
      adminToken: 'admin',
      clockScale: 1,
      callsPerHour: 36_000,
      actionSeconds: fasterActions(50),
    });
    endpoint = `${(await listen(server, 0, '127.0.0.1')).url}/v1`;
  });
  afterAll(() => closeServer(server));

  itWith('hcloud', hasProgram('hcloud'), 'to hcloud-cli', async () => {
    const options = { env: { ...env, HCLOUD_TOKEN: token, HCLOUD_ENDPOINT: endpoint } };
    const hcloud = async (command: string): Promise<string> =>
      (await run('hcloud', command.split(' '), options)).stdout;
    expect(await hcloud('server-type list -o noheader -o columns=name')).toContain('cpx11');
    expect(await hcloud('location list -o noheader -o columns=name')).toContain('fsn1');
    await hcloud('server create --name cli --type cpx11 --image debian-12 --location fsn1 --label a=b');
    await hcloud('server poweroff cli');
    const snapshot = /Image (\d+) created/.exec(
      await hcloud('server create-image --type snapshot --description before cli'),
    )?.[1];
    await hcloud('server poweron cli');
    await hcloud(`server rebuild --image ${snapshot} cli`);
    await hcloud('server add-label cli c=d');
    await hcloud('server update cli --name renamed');
    const described: unknown = JSON.parse(await hcloud('server describe renamed -o json'));
    expect(described).toMatchObject({
      name: 'renamed',
      status: 'running',
      labels: { a: 'b', c: 'd' },
      image: { id: Number(snapshot) },
    });
    await hcloud(`image delete ${snapshot}`);
    // The command returns as soon as the deletion is accepted, so the test waits for its end.
    await hcloud('server delete renamed');
    while ((await hcloud('server list -o noheader')) !== '') await wait(50);
  });

  itWith('python3-hcloud', hasModule('hcloud'), 'to python3-hcloud', async () => {
    const told = await python(`
import json
from hcloud import Client
from hcloud.images.domain import Image
from hcloud.locations.domain import Location
from hcloud.server_types.domain import ServerType
client = Client(token='${token}', api_endpoint='${endpoint}', poll_interval=0.05)
made = client.servers.create('python', server_type=ServerType('cpx11'), image=Image(name='debian-12'), location=Location('nbg1'))
made.action.wait_until_finished()
server = client.servers.get_by_name('python')
server.power_off().wait_until_finished()
taken = server.create_image(description='before')
taken.action.wait_until_finished()
image = client.images.get_by_id(taken.image.id)
server.rebuild(image).wait_until_finished()
server.power_on().wait_until_finished()
server.update(labels={'z': '1'})
listed = client.servers.get_all(label_selector='z=1')
commands = [action.command for action in server.get_actions()]
image.delete()
server.delete().wait_until_finished()
print(json.dumps([image.status, [one.name for one in listed], commands, len(client.servers.get_all())]))
`);
    expect(told).toEqual([
      'available',
      ['python'],
      ['create_server', 'stop_server', 'create_image', 'rebuild_server', 'start_server'],
      0,
    ]);
  });

  it('and names its limit where it refuses a call that exceeds it', async () => {
    const admin = emulatorAdmin(new URL(endpoint).origin, 'admin');
    const ask = async () => await fetch(`${endpoint}/servers`, { headers: { authorization: `Bearer ${token}` } });
    await admin.call('PUT', 'rate-limit', { perHour: 1 });
    expect([(await ask()).status, await (await ask()).json()]).toMatchObject([
      200,
      { error: { code: 'rate_limit_exceeded', message: 'limit of 1 requests per hour reached' } },
    ]);
    await admin.call('PUT', 'rate-limit', { perHour: 36_000 });
  });

  it('to the SDK that is generated from the public schema', async () => {
    Object.assign(OpenAPI, { BASE: endpoint, TOKEN: token });
    const ended = async (started: { id: number } | undefined): Promise<void> => {
      for (;;) {
        const { action } = await ActionsService.getActions1({ id: started?.id ?? 0 });
        if (action.status === 'success') return;
        if (action.status !== 'running') throw new Error(`${action.command} ended as ${action.status}`);
        await wait(20);
      }
    };
    const order = { name: 'sdk', server_type: 'cpx11', image: 'debian-12', location: 'hel1' };
    const made = await ServersService.postServers({ requestBody: order });
    const keyed = { ...order, name: 'keyed', user_data: '#cloud-config' };
    const other = await ServersService.postServers({ requestBody: keyed });
    await Promise.all([ended(made.action), ended(other.action)]);
    const { id } = made.server;
    const taken = await ServerActionsService.postServersActionsCreateImage({ id, requestBody: { type: 'snapshot' } });
    await ended(taken.action);
    const image = taken.image?.id ?? 0;
    const rebuilt = await ServerActionsService.postServersActionsRebuild({ id, requestBody: { image: String(image) } });
    const { id: otherId } = other.server;
    const rebuild = { id: otherId, requestBody: { image: 'debian-12' } };
    const again = await ServerActionsService.postServersActionsRebuild(rebuild);
    await Promise.all([ended(rebuilt.action), ended(again.action)]);
    // Only a server without SSH keys and user data gets a password of root, at its creation and at each rebuild.
    expect([made, rebuilt, other, again].map((answer) => answer.root_password)).toEqual([
      'emulator',
      'emulator',
      null,
      null,
    ]);
    expect((await ServersService.getServers1({ id })).server).toMatchObject({
      name: 'sdk',
      status: 'running',
      image: { id: image },
    });
    await ImagesService.deleteImages({ id: image });
    for (const gone of [id, otherId]) await ended((await ServersService.deleteServers({ id: gone })).action);
    expect((await ServersService.getServers({})).servers).toEqual([]);
  });
});

describe('the Proxmox emulator serves a machine’s whole life', () => {
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createProxmoxEmulator({
      stateDir: path.join(folder, 'proxmox'),
      tokens: new Map([['live', token]]),
      adminToken: 'admin',
      clockScale: 1,
      taskSeconds: fasterTasks(50),
    });
    ({ port } = await listen(server, 0, '127.0.0.1'));
  });
  afterAll(() => closeServer(server));

  itWith('python3-proxmoxer', hasModule('proxmoxer'), 'to python3-proxmoxer', async () => {
    // The client supports only https, but the emulator serves http.
    const told = await python(`
import json, time
from proxmoxer import ProxmoxAPI
from proxmoxer.backends import https
https.Backend.get_base_url = lambda self: 'http://127.0.0.1:${port}/api2/json'
api = ProxmoxAPI('127.0.0.1', user='live@pve', token_name='drydock', token_value='${token}', verify_ssl=False)
def ended(upid):
    while True:
        task = api.nodes('pve1').tasks(upid).status.get()
        if task['status'] == 'stopped':
            return task['exitstatus']
        time.sleep(0.02)
vmid = api.cluster.nextid.get()
vm = api.nodes('pve1').qemu(vmid)
ends = [ended(api.nodes('pve1').qemu(9000).clone.post(newid=vmid, name='python', full=1))]
vm.config.put(cores=2, memory=2048, description='a machine')
ends.append(ended(vm.resize.put(disk='scsi0', size='20G')))
ends.append(ended(vm.status.start.post()))
ends.append(ended(vm.snapshot.post(snapname='before', description='the first')))
ends.append(ended(vm.snapshot('before').rollback.post(start=1)))
names = [snapshot['name'] for snapshot in vm.snapshot.get()]
ends.append(ended(vm.snapshot('before').delete()))
config = vm.config.get()
listed = [one['name'] for one in api.nodes('pve1').qemu.get() if one['status'] == 'running']
ends.append(ended(vm.status.stop.post()))
ends.append(ended(vm.delete()))
nodes = [node['node'] for node in api.nodes.get()]
print(json.dumps([api.version.get()['release'], nodes, ends, names, config['cores'], listed]))
`);
    expect(told).toEqual(['8.4', ['pve1', 'pve2'], Array(8).fill('OK'), ['before', 'current'], 2, ['python']]);
  });

  it('to proxmox-api', async () => {
    const api = proxmoxApi({
      host: '127.0.0.1',
      port,
      schema: 'http',
      tokenID: 'live@pve!drydock',
      tokenSecret: token,
    });
    const node = api.nodes.$('pve1');
    const ended = async (upid: string): Promise<void> => {
      for (;;) {
        const { status, exitstatus } = await node.tasks.$(upid).status.$get();
        if (status === 'stopped') return expect([upid, exitstatus]).toEqual([upid, 'OK']);
        await wait(20);
      }
    };
    expect((await api.nodes.$get()).map((one) => [one.node, one.status])).toEqual([
      ['pve1', 'online'],
      ['pve2', 'online'],
    ]);
    const vmid = Number(await api.cluster.nextid.$get());
    const vm = node.qemu.$(vmid);
    await ended(await node.qemu.$(9_000).clone.$post({ newid: vmid, name: 'npm', full: true }));
    await vm.config.$put({ cores: 2, memory: '2048' });
    await ended(await vm.status.start.$post());
    await ended(await vm.snapshot.$post({ snapname: 'before' }));
    await ended(await vm.snapshot.$('before').rollback.$post({ start: true }));
    expect(await vm.status.current.$get()).toMatchObject({ name: 'npm', status: 'running', cpus: 2 });
    await ended(await vm.snapshot.$('before').$delete());
    await ended(await vm.status.stop.$post());
    await ended(await vm.$delete());
    expect((await node.qemu.$get()).map((one) => one.vmid)).toEqual([9_000, 9_001]);
  });
});

describe('the S3 emulator keeps a tree', () => {
  let s3: RunningS3;
  let tree: string;
  const contentOf = (name: string): Buffer => readFileSync(path.join(folder, name));
  beforeAll(async () => {
    s3 = await startS3({
      accounts: [{ accessKeyId: 'key', secretAccessKey: 'secret', buckets: ['*'], mayWrite: true, mayDelete: true }],
      buckets: [{ name: 'bucket', hasObjectLock: false }],
    });
    tree = path.join(folder, 'tree');
    mkdirSync(path.join(tree, 'a folder'), { recursive: true });
    writeFileSync(path.join(tree, 'ä + %20 & =.txt'), 'odd name');
    writeFileSync(path.join(tree, 'a folder/empty'), '');
    // The file is larger than one part of a multipart upload.
    writeFileSync(path.join(tree, 'a folder/large'), Buffer.alloc(12 * 1024 * 1024, 'large'));
  });
  afterAll(() => s3.close());
  const expectTree = (name: string): void => {
    for (const file of ['ä + %20 & =.txt', 'a folder/empty', 'a folder/large'])
      expect([file, contentOf(`${name}/${file}`).equals(contentOf(`tree/${file}`))]).toEqual([file, true]);
  };

  itWith('rclone', hasProgram('rclone'), 'for rclone, which finds no difference and deletes it', async () => {
    const remote = `:s3,provider=Other,access_key_id=key,secret_access_key=secret,endpoint='${s3.endpoint}':bucket/rclone`;
    const fixed = ['--config=/dev/null', '--s3-upload-cutoff=5M', '--s3-chunk-size=5M'];
    const rclone = (...args: string[]) => run('rclone', [...fixed, ...args], { env });
    await rclone('sync', tree, remote);
    await rclone('check', '--download', tree, remote);
    await rclone('copy', remote, path.join(folder, 'rclone'));
    expectTree('rclone');
    await rclone('purge', remote);
    expect((await rclone('lsf', '-R', remote.replace('/rclone', ''))).stdout).toBe('');
  });

  itWith('s3cmd', hasProgram('s3cmd'), 'for s3cmd, which reads back what it wrote and deletes it', async () => {
    const host = new URL(s3.endpoint).host;
    writeFileSync(path.join(folder, 's3cfg'), '');
    const fixed = [
      `--config=${folder}/s3cfg`,
      '--access_key=key',
      '--secret_key=secret',
      `--host=${host}`,
      `--host-bucket=${host}`,
    ];
    const s3cmd = (...args: string[]) =>
      run('s3cmd', [...fixed, '--no-ssl', '--region=us-east-1', '--multipart-chunk-size-mb=5', ...args], { env });
    await s3cmd('sync', `${tree}/`, 's3://bucket/s3cmd/');
    expect((await s3cmd('ls', '-r', 's3://bucket/s3cmd/')).stdout.trim().split('\n')).toHaveLength(3);
    mkdirSync(path.join(folder, 's3cmd'));
    await s3cmd('sync', 's3://bucket/s3cmd/', `${folder}/s3cmd/`);
    expectTree('s3cmd');
    await s3cmd('del', '-r', '--force', 's3://bucket/s3cmd/');
    expect((await s3cmd('ls', '-r', 's3://bucket/')).stdout).toBe('');
  });
});
