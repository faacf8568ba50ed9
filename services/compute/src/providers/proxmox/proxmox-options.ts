import type { ApiOptions } from '../http/provider-api';

/** A size that this cluster sells. */
export interface VmSize {
  cores: number;
  memoryMb: number;
  /** The size of the first disk. A larger disk is not shrunk. */
  diskGb: number;
}

export interface ProxmoxOptions extends ApiOptions {
  /**
   * The API token in the form `USER@REALM!TOKENID=UUID`. It needs VM.Audit, VM.Clone, VM.Config.*, VM.Allocate,
   * VM.PowerMgmt, VM.Snapshot, Datastore.AllocateSpace and Datastore.Audit.
   */
  token: string;
  /** PEM of the cluster's own authority. */
  ca?: string | undefined;
  /** The sizes, by the name under which each is ordered. */
  sizes: Readonly<Record<string, VmSize>>;
  /** The template that is cloned for each image. */
  templates: Readonly<Record<string, number>>;
}

/** The disk that a size applies to. Templates that follow Proxmox' guide boot from it. */
export const firstDisk = 'scsi0';
