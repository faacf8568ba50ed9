import type { Change, ComputeReason } from '../compute.types';
import { type Closing, type ComputeDriver, ComputeError, type ComputeReader } from '../compute-provider';
import { type ApiOptions, openProviderApi, type ProviderApi } from '../http/provider-api';
import type { HttpAnswer } from '../http/provider-http';
import { retryAfterSeconds } from '../http/rate-budget';
import { findChange, sendChange } from './hetzner-changes';
import { errorSchema, hetznerReader, prepareOn } from './hetzner-reader';

interface HetznerOptions extends ApiOptions {
  /** The API token of one project. */
  token: string;
}

const openHetznerApi = ({ token, ...options }: HetznerOptions): ProviderApi =>
  openProviderApi({ ...options, headers: { authorization: `Bearer ${token}` }, refusalIn });

/** The time is ample, because the provider lists a change within moments of accepting it. */
const lostAnswerSecondsUsual = 30;

/** One project of Hetzner Cloud, for handlers. */
export function hetznerComputeReader(options: HetznerOptions): ComputeReader & Closing {
  const api = openHetznerApi(options);
  return { ...hetznerReader(api), close: () => api.close() };
}

/** One project of Hetzner Cloud, for workers. */
export function hetznerCompute(options: HetznerOptions): ComputeDriver & Closing {
  const api = openHetznerApi(options);
  const reader = hetznerReader(api);
  return {
    ...reader,
    lostAnswerSeconds: options.lostAnswerSeconds ?? lostAnswerSecondsUsual,
    prepare: (change, signal) => prepareOn(api, 'machineId' in change ? change.machineId : null, signal),
    send: (change, _checkpoint, signal) => sendChange(api, reader, change, signal),
    find: (change, checkpoint, signal) => findChange(api, reader, change, checkpoint, signal),
    close: () => api.close(),
  };
}

/**
 * Definite refusals: the provider has read the request and done nothing. A 5xx is not a definite refusal, and neither
 * is a code that is not listed.
 */
const reasonOfCode: Readonly<Record<string, ComputeReason>> = {
  unauthorized: 'credentials_refused',
  forbidden: 'credentials_refused',
  token_readonly: 'credentials_refused',
  not_found: 'machine_not_found',
  conflict: 'conflict',
  locked: 'locked',
  resource_locked: 'locked',
  protected: 'protected',
  rate_limit_exceeded: 'rate_limited',
  invalid_input: 'rejected',
  json_error: 'rejected',
  method_not_allowed: 'rejected',
  resource_limit_exceeded: 'rejected',
};

/** Codes that have another reason for one kind of change. */
const reasonOfChange: Readonly<Partial<Record<Change['kind'], Readonly<Record<string, ComputeReason>>>>> = {
  // The name of a machine is Drydock's id of the server. If the name is taken, an earlier call whose answer was lost
  // has made the machine.
  create: {
    uniqueness_error: 'ambiguous',
    invalid_input: 'order_refused',
    not_found: 'order_refused',
    resource_unavailable: 'order_refused',
    placement_error: 'order_refused',
    unsupported_error: 'order_refused',
  },
  rollback: { invalid_input: 'incompatible' },
  rebuild: { invalid_input: 'incompatible' },
};

/**
 * The error for a definite refusal. Null for any other answer, which means something else for a read than for a change.
 */
function refusalIn({ status, headers, json }: HttpAnswer, kind?: Change['kind']): ComputeError | null {
  const parsed = errorSchema.safeParse(json);
  if (status < 400 || status >= 500 || (status !== 429 && !parsed.success)) return null;
  const { code, message } = parsed.success
    ? parsed.data.error
    : { code: 'rate_limit_exceeded', message: 'too many requests' };
  const reason = (kind === undefined ? undefined : reasonOfChange[kind]?.[code]) ?? reasonOfCode[code] ?? 'rejected';
  const text = `${status} ${code}: ${message.slice(0, 500)}`;
  return reason === 'rate_limited'
    ? new ComputeError(reason, text, { retryAfterSeconds: retryAfterSeconds(headers) })
    : new ComputeError(reason, text);
}
