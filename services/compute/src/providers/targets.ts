import type { Mode } from '@drydock/contracts/platform/values';

/** The price of a size, in the currency's smallest unit. */
interface Price {
  hourMinor: number;
  monthMinor: number;
}

/** The sizes, prices and plans that can be ordered in a range. */
export interface Offer {
  currency: string;
  prices: ReadonlyMap<string, Price>;
  /** Sizes by the plan's code. */
  plans: ReadonlyMap<string, string>;
}

/**
 * A range of servers is what one mode has under one deploy target. It has a provider, which runs the machines, and an
 * offer of sizes, prices and plans.
 */
export interface Target<Provider> {
  provider: Provider;
  offer: Offer;
}

/**
 * The targets by mode and deploy target. A sandbox range and a live range are different ranges, even under the same
 * name.
 */
export type Targets<Provider> = Readonly<Record<Mode, ReadonlyMap<string, Target<Provider>>>>;

interface Located {
  mode: Mode;
  deployTarget: string;
}

/** Undefined when nothing of that name is configured (any more). */
export const targetOf = <Provider>(
  targets: Targets<Provider>,
  { mode, deployTarget }: Located,
): Target<Provider> | undefined => targets[mode].get(deployTarget);
