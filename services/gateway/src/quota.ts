import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import type { Caller } from '@drydock/service/access/internal-token';

export type QuotaName = Exclude<EndpointDefinition['quota'], 'exempt'>;

/** A fixed window. */
export interface Quota {
  name: QuotaName;
  requestsMax: number;
  windowSeconds: number;
  /** The holder of the window that a call counts in. */
  holderOf(caller: Caller): string;
}

export type Quotas = Readonly<Record<QuotaName, Quota>>;

const windowSeconds = 60;
const perKey = (caller: Caller): string => caller.keyId;
const perOrganisation = (caller: Caller): string => caller.orgId;

/** The quotas of the specification, multiplied by `scale`. */
export function createQuotas(scale: number): Quotas {
  const requests = (count: number): number => Math.max(1, Math.round(count * scale));
  return {
    read: { name: 'read', requestsMax: requests(600), windowSeconds, holderOf: perKey },
    write: { name: 'write', requestsMax: requests(120), windowSeconds, holderOf: perKey },
    mint: { name: 'mint', requestsMax: requests(20), windowSeconds, holderOf: perOrganisation },
  };
}

/** The state of a window after a request was counted in it. */
export interface QuotaUse {
  isExceeded: boolean;
  remaining: number;
  /** Until the window ends; at least 1. */
  resetSeconds: number;
}

/** A window without any count: for unknown callers, and for calls without a quota. */
const untouched = ({ requestsMax, windowSeconds: resetSeconds }: Quota): QuotaUse => ({
  isExceeded: false,
  remaining: requestsMax,
  resetSeconds,
});

/** The two headers that every answer has, as alternating names and values. */
export const quotaHeaders = (quota: Quota, use: QuotaUse = untouched(quota)): string[] => [
  'RateLimit-Policy',
  quotaPolicy(quota),
  'RateLimit',
  quotaState(quota, use),
];

/** draft-ietf-httpapi-ratelimit-headers: `"read";q=600;w=60`. */
const quotaPolicy = ({ name, requestsMax, windowSeconds: seconds }: Quota): string =>
  `"${name}";q=${requestsMax};w=${seconds}`;
/** The same draft: `"read";r=599;t=60`. */
const quotaState = ({ name }: Quota, { remaining, resetSeconds }: QuotaUse): string =>
  `"${name}";r=${remaining};t=${resetSeconds}`;
