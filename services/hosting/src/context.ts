import type { Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access/internal-token';
import type { QuotaRule } from '@drydock/service/access/org-quota';
import type { WorkflowContext } from '@drydock/workflow/http/workflow-context';
import type { HostingDatabase, Tx } from './database.store';
import type { DomainProofs } from './domains/domain-proof';
import type { OffsiteReaders } from './offsite/offsite.types';
import type { ProofReader } from './proofs/proof-reader';
import type { BackupReader } from './providers/backup-storage';
import type { SiteHostReaders } from './providers/site-host';
import type { VendorTimelineReaders } from './providers/vendor-timeline';
import type { Owner } from './sites/site.types';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: HostingDatabase;
  siteHosts: SiteHostReaders;
  /** The modes that have a host over ssh. */
  sshModes: readonly Mode[];
  quota: QuotaRule;
  domainProofs: DomainProofs;
  backupStorage: BackupReader;
  proofs: ProofReader;
  /** Customers' own storage. */
  offsite: OffsiteReaders;
  vendorTimelines: VendorTimelineReaders;
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
