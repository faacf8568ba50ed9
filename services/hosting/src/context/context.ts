import type { Mode } from '@drydock/contracts/platform/values';
import type { QuotaRule } from '@drydock/service/http';
import type { WorkflowContext } from '@drydock/workflow/http';
import type { ProofReader } from '../proofs/proof.store';
import type { BackupReader } from '../providers/backup-storage';
import type { DomainProofs } from '../providers/domain-proof';
import type { OffsiteReaders } from '../providers/offsite-storage';
import type { SiteHostReaders } from '../providers/site-host';
import type { VendorTimelineReaders } from '../providers/vendor-timeline';
import type { HostingDatabase, Tx } from './database.store';

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
