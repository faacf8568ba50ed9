import type { ApiOptions } from '../http/provider-api';

/** A size as this cluster sells it. */
export interface VmSize {
  cores: number;
  memoryMb: number;
  /** The first disk grows to it; it never shrinks. */
  diskGb: number;
}

export interface ProxmoxOptions extends ApiOptions {
  /** `USER@REALM!TOKENID=UUID`, with VM.Audit, VM.Clone, VM.Config.*, VM.Allocate, VM.PowerMgmt, VM.Snapshot, Datastore.AllocateSpace and .Audit. */
  token: string;
  /** PEM of the cluster's own authority. */
  ca?: string | undefined;
  /** By the word under which it is ordered. */
  sizes: Readonly<Record<string, VmSize>>;
  /** Name of an image to the template that is cloned for it. */
  templates: Readonly<Record<string, number>>;
}

/** The disk that a size is about: what templates made by Proxmox' own guide boot from. */
export const firstDisk = 'scsi0';
