import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Call, Refusal, type Reply } from '../protocol/call';
import type { Snapshot, Task, Vm } from './proxmox-world';

/** The content type is exactly that of a real cluster, because clients compare it. */
const jsonReply = (status: number, body: unknown): Reply => ({
  status,
  headers: { 'content-type': 'application/json;charset=UTF-8' },
  body: JSON.stringify(body),
});

/** The answer to a handler's error: 500 with the text of the error, as in Proxmox. */
export const died = (message: string): Refusal => new Refusal(jsonReply(500, { data: null, message: `${message}\n` }));

export const unverified = (errors: Readonly<Record<string, string>>): Refusal =>
  new Refusal(jsonReply(400, { data: null, errors, message: 'Parameter verification failed.\n' }));

export const forbidden = (path: string, privilege: string): Refusal =>
  new Refusal(jsonReply(403, { data: null, message: `Permission check failed (${path}, ${privilege})\n` }));

/** The answer when the called node cannot reach the node that the call is for. */
export const unreachable = (): Refusal => new Refusal(jsonReply(595, { data: null, message: 'No route to host' }));

export const unauthorized = (): Reply => ({
  status: 401,
  headers: { 'content-type': 'text/plain' },
  body: 'authentication failure',
});
export const noSuchUri = (): Refusal =>
  new Refusal(jsonReply(501, { data: null, message: 'Method not implemented\n' }));

export const dataReply = (data: unknown): Reply => jsonReply(200, { data });

const gib = 2 ** 30;

/** Tells whether the VM is an incomplete clone. Its temporary configuration has a lock, and no name or settings. */
const isMaking = ({ lock }: Vm): boolean => lock === 'clone';
const nameOf = (vm: Vm): string => (isMaking(vm) ? `VM ${vm.vmid}` : vm.name);

/** Shows a VM in the list of the cluster. If its node is silent, the list has only the facts that every node knows. */
export const showResource = (vm: Vm, isSilent: boolean) => ({
  ...{ id: `qemu/${vm.vmid}`, type: 'qemu', vmid: vm.vmid, node: vm.node },
  ...(isSilent
    ? { status: 'unknown' }
    : {
        ...{ name: nameOf(vm), status: vm.status, template: vm.isTemplate ? 1 : 0 },
        ...{ maxcpu: vm.cores, maxmem: vm.memoryMb * 2 ** 20, maxdisk: vm.diskGb * gib },
      }),
  ...(vm.lock === null ? {} : { lock: vm.lock }),
});

export const showStatus = (vm: Vm) => ({
  ...{ vmid: vm.vmid, name: nameOf(vm), status: vm.status, qmpstatus: vm.qmpstatus, ha: { managed: 0 } },
  ...{ cpus: vm.cores, maxmem: vm.memoryMb * 2 ** 20, maxdisk: vm.diskGb * gib },
  ...(vm.isTemplate ? { template: 1 } : {}),
  ...(vm.lock === null ? {} : { lock: vm.lock }),
});

export const showConfig = (vm: Vm) =>
  isMaking(vm) ? { description: ' qmclone temporary file\n', lock: vm.lock, digest: digestOf(vm) } : showWhole(vm);

const showWhole = (vm: Vm) => ({
  ...{ name: vm.name, description: vm.description, cores: vm.cores, memory: String(vm.memoryMb), ostype: 'l26' },
  scsi0: `${vm.storage}:vm-${vm.vmid}-disk-0,size=${vm.diskGb}G`,
  ...(vm.hasCloudInit ? { ide2: `${vm.storage}:vm-${vm.vmid}-cloudinit,media=cdrom` } : {}),
  digest: digestOf(vm),
  ...(vm.addresses === null ? {} : { agent: '1' }),
  ...(vm.isTemplate ? { template: 1 } : {}),
  ...(vm.isProtected ? { protection: 1 } : {}),
  ...(vm.parent === null ? {} : { parent: vm.parent }),
  ...(vm.lock === null ? {} : { lock: vm.lock }),
});

const showSnapshot = ({ name, description, snaptime, parent, snapstate }: Snapshot) => ({
  ...{ name, description, snaptime, vmstate: 0 },
  ...(parent === null ? {} : { parent }),
  ...(snapstate === null ? {} : { snapstate }),
});

export const showSnapshots = (vm: Vm) => [
  ...vm.snapshots.map(showSnapshot),
  {
    ...{
      name: 'current',
      description: 'You are here!',
      digest: digestOf(vm),
      running: vm.status === 'running' ? 1 : 0,
    },
    ...(vm.parent === null ? {} : { parent: vm.parent }),
  },
];

const digestOf = (vm: Vm): string =>
  createHash('sha1')
    .update(JSON.stringify([vm.name, vm.cores, vm.memoryMb, vm.lock]))
    .digest('hex');

const userOf = ({ account }: Task): string => (account === null ? 'root@pam' : `${account}@pve!drydock`);

export const showTaskStatus = (task: Task) => ({
  ...{
    upid: task.upid,
    node: task.node,
    pid: task.pid,
    pstart: task.pstart,
    starttime: Math.floor(task.started / 1_000),
  },
  ...{
    type: task.type,
    id: task.id,
    user: userOf(task),
    tokenid: 'drydock',
    status: task.isOver ? 'stopped' : 'running',
  },
  ...(task.isOver ? { exitstatus: task.exitstatus } : {}),
});

/** Shows a task as an entry of a list. The entry's status is the text of the task's result. */
export const showTask = (task: Task) => ({
  ...{
    upid: task.upid,
    node: task.node,
    pid: task.pid,
    pstart: task.pstart,
    starttime: Math.floor(task.started / 1_000),
  },
  ...{ type: task.type, id: task.id, user: userOf(task) },
  ...(task.isOver ? { status: task.exitstatus, endtime: Math.floor(task.endsAt / 1_000) } : {}),
});

/** A boolean parameter. Forms carry only text, and Proxmox writes booleans as 0 and 1. */
const flag = z.enum(['0', '1']).transform((text) => text === '1');
const int = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number);
const configId = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]+$/);
const dnsName = z.string().regex(/^(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*$/);

/**
 * Bodies of the implemented calls, with the fields and types of the public API viewer. Other fields are refused, so
 * that a driver cannot send fields that do not exist.
 */
export const bodySchemas = {
  clone: z.strictObject({
    newid: int.pipe(z.int().min(100).max(999_999_999)),
    name: dnsName.optional(),
    description: z.string().max(8_192).optional(),
    full: flag.optional(),
    target: z.string().optional(),
    storage: z.string().optional(),
    pool: z.string().optional(),
    snapname: configId.max(40).optional(),
    format: z.enum(['raw', 'qcow2', 'vmdk']).optional(),
  }),
  config: z.strictObject({
    cores: int.pipe(z.int().min(1)).optional(),
    memory: int.pipe(z.int().min(16)).optional(),
    description: z.string().max(8_192).optional(),
    agent: z.string().optional(),
    ciuser: z.string().optional(),
    /** Lines of `authorized_keys`, URL-encoded. */
    sshkeys: z
      .string()
      .regex(/^[-%a-zA-Z0-9_.!~*'()]*$/)
      .optional(),
    digest: z.string().max(64).optional(),
  }),
  resize: z.strictObject({
    disk: z.string(),
    size: z.string().regex(/^\+?\d+(?:\.\d+)?[KMGT]?$/),
    digest: z.string().optional(),
  }),
  snapshot: z.strictObject({
    snapname: configId.max(40),
    description: z.string().optional(),
    vmstate: flag.optional(),
  }),
  rollback: z.strictObject({ start: flag.optional() }),
  power: z.strictObject({ timeout: int.optional(), skiplock: flag.optional() }),
};

/** Parses a form. @throws Refusal 400 */
export function parseForm<T>(schema: z.ZodType<T>, { body }: Call): T {
  const parsed = schema.safeParse(Object.fromEntries(new URLSearchParams(body.toString('utf8'))));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => [
          key,
          'property is not defined in schema and the schema does not allow additional properties',
        ])
      : [[String(issue.path[0] ?? ''), issue.message]],
  );
  throw unverified(Object.fromEntries(problems));
}

/** Allows only the query parameters of the public schema. @throws Refusal 400 for another parameter */
export function allowQuery({ query }: Call, names: readonly string[]): void {
  const unknown = [...query.keys()].filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw unverified(Object.fromEntries(unknown.map((name) => [name, 'property is not defined in schema'])));
}
