import type { Mode } from '@drydock/contracts/values';
import type { TargetConfig, TargetsConfig } from './config-targets';
import type { Closing, ComputeDriver, ComputeReader } from './providers/compute-provider';
import { hetznerCompute, hetznerComputeReader } from './providers/compute-provider.hetzner';
import type { Offer, Target, Targets } from './servers/targets';

type Configured = Readonly<Record<Mode, TargetsConfig>>;

/** The drivers of every range, by configuration, and how to close them. */
export interface OpenTargets<Provider> {
  targets: Targets<Provider>;
  close(): Promise<void>;
}

const hetznerOptions = ({ url, token, deadline_ms, lost_answer_seconds }: Extract<TargetConfig, { driver: 'hetzner' }>) => ({
  baseUrl: url,
  token,
  deadlineMs: deadline_ms,
  lostAnswerSeconds: lost_answer_seconds,
});

const openReader = (config: TargetConfig): ComputeReader & Closing => hetznerComputeReader(hetznerOptions(config));
const openDriver = (config: TargetConfig): ComputeDriver & Closing => hetznerCompute(hetznerOptions(config));

/** What handlers get: they look and never change. */
export const openReaders = (configured: Configured): OpenTargets<ComputeReader> => openAll(configured, openReader);

/** What workers get. */
export const openDrivers = (configured: Configured): OpenTargets<ComputeDriver> => openAll(configured, openDriver);

function openAll<Provider extends Closing>(configured: Configured, open: (config: TargetConfig) => Provider): OpenTargets<Provider> {
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
  prices: new Map(Object.entries(specs).map(([name, price]) => [name, { hourMinor: price.hour_minor, monthMinor: price.month_minor }])),
  plans: new Map(Object.entries(plans)),
});
