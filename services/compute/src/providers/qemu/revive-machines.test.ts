import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { reviveMachines } from './compute-provider.qemu';
import {
  claimJob,
  type JobRecord,
  type MachineFolders,
  openMachineFolders,
  readJobs,
  saveJob,
} from './machine-folders';

let root: string;
let folders: MachineFolders;
let begun: string[];
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'drydock-revive-'));
  folders = openMachineFolders(root);
  begun = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const hourMs = 3_600_000;
const record = {
  spec: 'small',
  image: 'blank',
  zone: 'here',
  labels: {},
  cpus: 1,
  memoryMb: 64,
  diskGb: 1,
  system: { disk: '/none' },
};
const job = (number: number, change: Partial<JobRecord>): JobRecord => ({
  ...{
    number,
    kind: 'start',
    reference: 'order',
    state: 'succeeded',
    isApplied: false,
    startsAfter: false,
    snapshotId: null,
  },
  ...{
    description: '',
    isForced: false,
    guestSeconds: 0,
    failure: null,
    begunAt: new Date(Date.now() - 1_000 * hourMs).toISOString(),
  },
  ...change,
});

/** Creates a machine that was ordered and started, and has no process. */
async function lostMachine(name: string): Promise<string> {
  await folders.create({ ...record, name }, job(1, { kind: 'create' }));
  await claimJob(folders.of(name), job(2, {}));
  return folders.of(name);
}
const revive = () => reviveMachines(folders, (machineFolder) => void begun.push(path.basename(machineFolder)));
/** Marks the newest job as succeeded, as if it had begun `hoursAgo` hours ago. */
async function startOne(machineFolder: string, hoursAgo: number): Promise<void> {
  const last = (await readJobs(machineFolder)).at(-1);
  if (last === undefined) throw new Error('there is no job');
  await saveJob(machineFolder, {
    ...last,
    state: 'succeeded',
    begunAt: new Date(Date.now() - hoursAgo * hourMs).toISOString(),
  });
}

it('a machine is started after each restart of its host, however many there are', async () => {
  const machineFolder = await lostMachine('one');
  for (let restarts = 1; restarts <= 12; restarts += 1) {
    await revive();
    expect(begun).toHaveLength(restarts);
    await startOne(machineFolder, 24 * (20 - restarts));
  }
});

it('a machine that loses its process again and again within hours is left to staff', async () => {
  const machineFolder = await lostMachine('one');
  for (let falls = 0; falls < 12; falls += 1) {
    await revive();
    if (begun.length > falls) await startOne(machineFolder, 0);
  }
  expect(begun).toHaveLength(5);
});

it('a machine whose record cannot be read does not prevent the start of the others', async () => {
  const broken = await lostMachine('a');
  await lostMachine('b');
  writeFileSync(path.join(broken, 'machine.json'), '{"name":');
  await expect(revive()).resolves.toBeUndefined();
  expect(begun).toEqual(['b']);
});

it.each([
  ['powered off', [{ kind: 'power_off' }], false],
  ['powered off and on', [{ kind: 'power_off' }, { kind: 'power_on' }], true],
  ['not powered off, because its guest did not react', [{ kind: 'power_off', state: 'failed' }], true],
  ['restarted', [{ kind: 'reboot', startsAfter: true }], true],
] as const)(
  'a machine that has lost its process and was last %s is started only if it should run',
  async (_what, changes, runsAgain) => {
    const machineFolder = await lostMachine('one');
    for (const [at, change] of changes.entries()) await claimJob(machineFolder, job(3 + at, change));
    await revive();
    expect(begun).toEqual(runsAgain ? ['one'] : []);
  },
);
