import type { Mode } from '@drydock/contracts/values';
import type { Caller } from '@drydock/service-kit/internal-token';
import type { Pager } from '@drydock/service-kit/paging';
import type { Dispatcher } from '@drydock/workflow/dispatcher';
import type { WorkflowListener } from '@drydock/workflow/listener';
import type { HostingDatabase } from './database.store';
import type { OffsiteReaders } from './offsite/offsite.types';
import type { ProofReader } from './proofs/proof-reader';
import type { BackupReader } from './providers/backup-storage';
import type { SiteHostReaders } from './providers/site-host';
import type { VendorTimelineReaders } from './providers/vendor-timeline';
import type { Owner } from './sites/site.types';

/** What a handler may use: it looks at the world and never changes it. */
export interface HandlerContext {
  database: HostingDatabase;
  pager: Pager;
  siteHosts: SiteHostReaders;
  /** The worlds that have a host over ssh. */
  sshModes: readonly Mode[];
  backupStorage: BackupReader;
  proofs: ProofReader;
  /** Customers' own storage. */
  offsite: OffsiteReaders;
  vendorTimelines: VendorTimelineReaders;
  /** What Postgres says about workflows, for those who watch one. */
  listener: WorkflowListener;
  /** Tells the worker of a new workflow; called after the commit. */
  ring: Dispatcher['ring'];
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
