import { type EmulatorProject, hetznerEmulatorProgram, hetznerReaderTokenOf, hetznerTokenOf } from './hetzner-emulator';
import { type ProgramPlan, type Surroundings, serviceEnvironment, urlOf } from './program';
import { proxmoxApiOf, proxmoxEmulatorProgram } from './proxmox-emulator';

/** What the demo sells, at the prices of a small provider. */
const hetznerOffer = {
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx21: { hour_minor: 2, month_minor: 849 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
  },
  plans: { small: 'cpx11', medium: 'cpx21' },
};

/** What its own cluster is made into. */
const proxmoxOffer = {
  currency: 'EUR',
  specs: { 'vm-small': { hour_minor: 1, month_minor: 390 }, 'vm-medium': { hour_minor: 2, month_minor: 790 } },
  plans: { small: 'vm-small', medium: 'vm-medium' },
  sizes: { 'vm-small': { cores: 1, memory_mb: 2_048, disk_gb: 20 }, 'vm-medium': { cores: 2, memory_mb: 4_096, disk_gb: 40 } },
  templates: { 'debian-12': 9_000, 'debian-12-zfs': 9_001 },
};

/** The ranges of one mode, each with its provider: several at once, as an installation may have them. */
function targetsOf(project: EmulatorProject, around: Surroundings, role: 'driver' | 'reader'): string {
  const token = role === 'driver' ? hetznerTokenOf(project, around) : hetznerReaderTokenOf(project, around);
  return JSON.stringify({
    fsn: { driver: 'hetzner', url: `${urlOf(around, 'hetzner-stand-in')}/v1`, token, ...hetznerOffer },
    pve: { driver: 'proxmox', ...proxmoxApiOf(project, around, role), ...proxmoxOffer },
  });
}

/** What both compute processes get. */
const computeEnvironment = (around: Surroundings): Record<string, string> => ({
  ...serviceEnvironment('compute', around),
  QUEUE_URL: around.queueUrl,
});

/** Only the worker has tokens that change machines. */
const workerEnvironment = (around: Surroundings): Record<string, string> => ({
  ...computeEnvironment(around),
  COMPUTE_TARGETS: targetsOf('live', around, 'driver'),
  SANDBOX_COMPUTE_TARGETS: targetsOf('sandbox', around, 'driver'),
});

const apiEnvironment = (around: Surroundings): Record<string, string> => ({
  ...computeEnvironment(around),
  COMPUTE_READER_TARGETS: targetsOf('live', around, 'reader'),
  SANDBOX_COMPUTE_READER_TARGETS: targetsOf('sandbox', around, 'reader'),
});

export const computePrograms: readonly ProgramPlan[] = [
  hetznerEmulatorProgram,
  proxmoxEmulatorProgram,
  { name: 'compute', entry: 'services/compute/dist/server.js', tier: 'service', environment: apiEnvironment },
  { name: 'compute-worker', entry: 'services/compute/dist/worker.js', tier: 'service', environment: workerEnvironment },
];
