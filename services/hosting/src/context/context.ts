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

/** The objects that request handlers get. They read other systems and never change them. */
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

/**
 * The objects that workflow steps get. They include the drivers, which can change other systems and which request
 * handlers never get.
 */
export interface WorkContext {
  database: HostingDatabase;
  siteHosts: SiteHosts;
  backupStorage: BackupStorage;
  /** Customers' own storage. */
  offsite: OffsiteDrivers;
  vendorTimelines: VendorTimelines;
  /**
   * `vendorPollMs` is the pause between two reads of the vendor's jobs. If the answer to an order was lost,
   * `vendorWatchMs` is the time within which the vendor's job must appear.
   */
  vendorPollMs: number;
  vendorWatchMs: number;
  /** 32 bytes, from which the keys of all archives are derived. */
  archiveKey: RootKey;
  /** The shortest time of a restore on a sandbox site whose name asks for a slow restore. */
  slowMs: number;
  /** Returns the end of the lock on the control object of an immutability check, for an object that is written now. */
  controlEnd(): Date;
  /** Reads a site's files and rows for the restore drill. Null if the platform has no site for drills. */
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
