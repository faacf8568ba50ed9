import type { EndpointDefinition } from '@drydock/contracts/endpoint';
import type { Caller } from '@drydock/service-kit/internal-token';

export type QuotaName = Exclude<EndpointDefinition['quota'], 'exempt'>;

/** A fixed window. */
export interface Quota {
  name: QuotaName;
  requestsMax: number;
  windowSeconds: number;
  /** Whose window a call counts in. */
  holderOf(caller: Caller): string;
}

const windowSeconds = 60;
const perKey = (caller: Caller): string => caller.keyId;
const perOrganisation = (caller: Caller): string => caller.orgId;

/** The quotas of the specification, multiplied by `scale`. */
export function createQuotas(scale: number): Readonly<Record<QuotaName, Quota>> {
  const requests = (count: number): number => Math.max(1, Math.round(count * scale));
  return {
    read: { name: 'read', requestsMax: requests(600), windowSeconds, holderOf: perKey },
    write: { name: 'write', requestsMax: requests(120), windowSeconds, holderOf: perKey },
    mint: { name: 'mint', requestsMax: requests(20), windowSeconds, holderOf: perOrganisation },
  };
}

/** What a window looks like after a request was counted in it. */
export interface QuotaUse {
  isExceeded: boolean;
  remaining: number;
  /** Until the window ends; at least 1. */
  resetSeconds: number;
}

/** draft-ietf-httpapi-ratelimit-headers: `"read";q=600;w=60`. */
export const quotaPolicy = ({ name, requestsMax, windowSeconds: seconds }: Quota): string => `"${name}";q=${requestsMax};w=${seconds}`;
/** The same draft: `"read";r=599;t=60`. */
export const quotaState = ({ name }: Quota, { remaining, resetSeconds }: QuotaUse): string => `"${name}";r=${remaining};t=${resetSeconds}`;
