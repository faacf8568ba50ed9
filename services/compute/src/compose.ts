import type { Mode } from '@drydock/contracts/platform/values';
import { createIdempotencyPurge } from '@drydock/service/effects';
import { type ApiProcess, composeApiProcess, createPager } from '@drydock/service/http';
import { deriveKeys, layFoundation, type Process } from '@drydock/service/process';
import { composeWorkerProcess, connectWorkflows } from '@drydock/workflow/http';
import type { ServerConfig, TargetConfig, TargetsConfig, WorkerConfig } from './config';
import { openDatabase } from './context/database.store';
import type { Closing, ComputeDriver, ComputeReader, Offer, Target, Targets } from './providers/compute-provider';
import { hetznerCompute, hetznerComputeReader } from './providers/hetzner/compute-provider.hetzner';
import { proxmoxCompute, proxmoxComputeReader } from './providers/proxmox/compute-provider.proxmox';
import type { ProxmoxOptions } from './providers/proxmox/proxmox-find';
import { type QemuOptions, qemuCompute, qemuComputeReader } from './providers/qemu/compute-provider.qemu';
import { routes } from './routes';
import { scheduleReconciliation } from './servers/reconcile-servers.workflow';
import { workflows } from './workflows';

type Configured = Readonly<Record<Mode, TargetsConfig>>;

interface OpenTargets<Provider> {
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

const openReaders = (configured: Configured): OpenTargets<ComputeReader> => openAll(configured, openReader);
const openDrivers = (configured: Configured): OpenTargets<ComputeDriver> => openAll(configured, openDriver);

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

/** The name of the API and of the worker, for the queue and for the gateway's tokens. */
const serviceName = 'compute';

/** The quota does not count servers that failed or were terminated. */
const serversCounted =
  "FROM servers WHERE org_id = $1::uuid AND mode = $2::text::mode AND status NOT IN ('failed', 'terminated')";

/** Composes the process that answers requests. It has no drivers, so it can change nothing at a provider. */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const { connected, changed } = connectWorkflows(foundation, config, serviceName);
  const readers = openReaders({ live: config.COMPUTE_READER_TARGETS, sandbox: config.SANDBOX_COMPUTE_READER_TARGETS });
  lifetime.onClose('providers', () => readers.close());
  const context = {
    database,
    ...connected,
    pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')),
    quota: { counted: serversCounted, usualMax: config.SERVERS_PER_ORGANISATION },
    snapshotsMax: config.SNAPSHOTS_PER_SERVER,
    targets: readers.targets,
  };
  return composeApiProcess(foundation, config, {
    name: serviceName,
    changed,
    routes: routes(context),
    beside: { 'idempotency purge': createIdempotencyPurge(database, log) },
  });
}

/** Composes the process that runs the workflows. No other process has drivers. */
export function composeWorker(config: WorkerConfig): Process {
  const foundation = layFoundation(config, openDatabase);
  const { lifetime, database } = foundation;
  const drivers = openDrivers({ live: config.COMPUTE_TARGETS, sandbox: config.SANDBOX_COMPUTE_TARGETS });
  lifetime.onClose('providers', () => drivers.close());
  const { targets } = drivers;
  const context = {
    database,
    targets,
    guestSeconds: config.GUEST_SECONDS,
    slowMs: config.SANDBOX_SLOW_MS,
    now: () => new Date(),
  };
  return composeWorkerProcess(foundation, config, {
    name: serviceName,
    workflows,
    context,
    schedule: () => scheduleReconciliation(database, targets, config.RECONCILE_SECONDS),
  });
}
