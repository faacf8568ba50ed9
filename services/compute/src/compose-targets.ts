import type { Mode } from '@drydock/contracts/platform/values';
import type { TargetConfig, TargetsConfig } from './config-targets';
import type { Closing, ComputeDriver, ComputeReader } from './providers/compute-provider';
import { hetznerCompute, hetznerComputeReader } from './providers/compute-provider.hetzner';
import { proxmoxCompute, proxmoxComputeReader } from './providers/compute-provider.proxmox';
import { qemuCompute, qemuComputeReader } from './providers/compute-provider.qemu';
import type { ProxmoxOptions } from './providers/proxmox/proxmox-options';
import type { QemuOptions } from './providers/qemu/qemu-options';
import type { Offer, Target, Targets } from './servers/targets';

type Configured = Readonly<Record<Mode, TargetsConfig>>;

/** The drivers of every range, by configuration, and how to close them. */
export interface OpenTargets<Provider> {
  targets: Targets<Provider>;
  close(): Promise<void>;
}

const callsOf = ({
  url,
  deadline_ms,
  lost_answer_seconds,
}: Pick<Extract<TargetConfig, { driver: 'hetzner' | 'proxmox' }>, 'url' | 'deadline_ms' | 'lost_answer_seconds'>) => ({
  baseUrl: url,
  deadlineMs: deadline_ms,
  lostAnswerSeconds: lost_answer_seconds,
});

const proxmoxOptions = (config: Extract<TargetConfig, { driver: 'proxmox' }>): ProxmoxOptions => ({
  ...callsOf(config),
  ...{ token: config.token, ca: config.ca, templates: config.templates },
  sizes: Object.fromEntries(
    Object.entries(config.sizes).map(([name, { cores, memory_mb, disk_gb }]) => [
      name,
      { cores, memoryMb: memory_mb, diskGb: disk_gb },
    ]),
  ),
});

const qemuOptions = ({ folder, zone, images, sizes }: Extract<TargetConfig, { driver: 'qemu' }>): QemuOptions => ({
  ...{ folder, zone, images },
  sizes: Object.fromEntries(
    Object.entries(sizes).map(([name, { cpus, memory_mb, disk_gb }]) => [
      name,
      { cpus, memoryMb: memory_mb, diskGb: disk_gb },
    ]),
  ),
});

function openReader(config: TargetConfig): ComputeReader & Closing {
  switch (config.driver) {
    case 'hetzner':
      return hetznerComputeReader({ ...callsOf(config), token: config.token });
    case 'proxmox':
      return proxmoxComputeReader(proxmoxOptions(config));
    case 'qemu':
      return qemuComputeReader(qemuOptions(config));
  }
}

function openDriver(config: TargetConfig): ComputeDriver & Closing {
  switch (config.driver) {
    case 'hetzner':
      return hetznerCompute({ ...callsOf(config), token: config.token });
    case 'proxmox':
      return proxmoxCompute(proxmoxOptions(config));
    case 'qemu':
      return qemuCompute(qemuOptions(config));
  }
}

/** The part for handlers: it only reads. */
export const openReaders = (configured: Configured): OpenTargets<ComputeReader> => openAll(configured, openReader);

/** The part for workers. */
export const openDrivers = (configured: Configured): OpenTargets<ComputeDriver> => openAll(configured, openDriver);

function openAll<Provider extends Closing>(
  configured: Configured,
  open: (config: TargetConfig) => Provider,
): OpenTargets<Provider> {
  const opened: Provider[] = [];
  const openMode = (configs: TargetsConfig): ReadonlyMap<string, Target<Provider>> =>
    new Map(
      Object.entries(configs).map(([name, config]) => {
        const provider = open(config);
        opened.push(provider);
        return [name, { provider, offer: offerOf(config) }];
      }),
    );
  return {
    targets: { live: openMode(configured.live), sandbox: openMode(configured.sandbox) },
    close: async () => {
      await Promise.all(opened.map((provider) => provider.close()));
    },
  };
}

const offerOf = ({ currency, specs, plans }: TargetConfig): Offer => ({
  currency,
  prices: new Map(
    Object.entries(specs).map(([name, price]) => [
      name,
      { hourMinor: price.hour_minor, monthMinor: price.month_minor },
    ]),
  ),
  plans: new Map(Object.entries(plans)),
});
