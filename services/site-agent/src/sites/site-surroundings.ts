import type { CpuShares } from '@drydock/agent/host';
import type { BoxNetwork, Isolation } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import type { OutgoingPolicy } from '../apps/outgoing';
import type { PagePlaces } from '../content/page-places';
import type { DatabasesByEngine } from '../database/databases-by-engine';
import type { SlowRemoval } from '../releases/slow-removal';

/** The parts of the host that its sites share. */
export interface SiteSurroundings {
  host: string;
  databases: DatabasesByEngine;
  removal: SlowRemoval;
  cpu: CpuShares;
  /** The organisations' shares of this host for pages. */
  places: PagePlaces;
  /** The most bytes that a site's live files may take. The same limit applies separately to its live database. */
  diskBytes: number;
  /** The means that keep a site's programs apart from everything else. */
  isolation: Isolation;
  /** Whether an application has a network of its own. */
  network: BoxNetwork;
  /** The policy for applications' connections from a network of their own. */
  outgoing: OutgoingPolicy;
  /** Whether applications run without isolation. */
  isRiskTaken: boolean;
  /** Runs one change of a site at a time. A job's changes of the site's releases take turns with all other changes. */
  inTurn<T>(siteId: string, work: () => Promise<T>): Promise<T>;
  log: Log;
}
