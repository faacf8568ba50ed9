import type { RootKey } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';
import type { QuotaRule } from '@drydock/service/http';
import { type WorkflowRun, workflowsFor } from '@drydock/workflow/definition';
import type { WorkflowContext } from '@drydock/workflow/http';
import type { ProofReader } from '../proofs/proof.store';
import type { BackupReader, BackupStorage } from '../providers/backup-storage';
import type { DomainProofs } from '../providers/domain-proof';
import type { OffsiteDrivers, OffsiteReaders } from '../providers/offsite-storage';
import type { DrillProbe, SiteHostReaders, SiteHosts, SiteRef } from '../providers/site-host';
import type { VendorTimelineReaders, VendorTimelines } from '../providers/vendor-timeline';
import type { HostingDatabase, Tx } from './database.store';

/** The dependencies of request handlers. They let a handler read other systems, but not change them. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: HostingDatabase;
  siteHosts: SiteHostReaders;
  /** The modes for which an ssh host is configured. */
  sshModes: readonly Mode[];
  quota: QuotaRule;
  domainProofs: DomainProofs;
  backupStorage: BackupReader;
  proofs: ProofReader;
  /** Customers' own storage. */
  offsite: OffsiteReaders;
  vendorTimelines: VendorTimelineReaders;
}

/** The dependencies of workflow steps. They include the drivers, which change other systems. */
export interface WorkContext {
  database: HostingDatabase;
  siteHosts: SiteHosts;
  backupStorage: BackupStorage;
  /** Customers' own storage. */
  offsite: OffsiteDrivers;
  vendorTimelines: VendorTimelines;
  /**
   * `vendorPollMs` is the pause between two reads of the vendor's jobs. `vendorWatchMs` is how long a worker waits for
   * the job of a request to appear in the vendor's list.
   */
  vendorPollMs: number;
  vendorWatchMs: number;
  /**
   * The root key, from which the keys of all archives are derived. During a rotation it includes the former root key.
   */
  archiveKey: RootKey;
  /** The milliseconds that the restore of a sandbox site waits if the site's name contains `slow`. */
  slowMs: number;
  /** The end of a lock that the immutability check sets now on its control object. */
  controlEnd(): Date;
  /** Reads files and rows of restored sites for the drill. Null if no site can be made for drills. */
  drillProbe: DrillProbe | null;
  now(): Date;
}

export const defineWorkflow = workflowsFor<WorkContext, Tx>();

/** The site that a step works on. */
export const refOf = ({ orgId, mode, subject }: Pick<WorkflowRun<unknown>, 'orgId' | 'mode' | 'subject'>): SiteRef => ({
  siteId: subject.id,
  orgId,
  mode,
});
