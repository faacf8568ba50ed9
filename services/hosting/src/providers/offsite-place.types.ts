import type { Mode } from '@drydock/contracts/platform/values';

/** The place at which a customer keeps copies. */
export interface OffsitePlace {
  /** `https://host[:port]` */
  endpoint: string;
  region: string;
  bucket: string;
  /** Folders without a slash at either end; '' is the whole bucket. */
  prefix: string;
}

/** A customer's place for copies of one site. */
export interface Destination extends OffsitePlace {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  /** Null once the credentials were removed. */
  sealedCredentials: Buffer | null;
  encryptionKeyId: string | null;
  lastErrorCode: string;
}

/** The fields that sealed credentials are bound to, so that credentials copied into another row cannot be opened. */
export type SealedPlace = Pick<Destination, 'siteId' | 'endpoint' | 'bucket' | 'prefix'>;
