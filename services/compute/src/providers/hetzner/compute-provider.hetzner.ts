import type { Closing, ComputeDriver, ComputeReader } from '../compute-provider';
import { type ApiOptions, openProviderApi, type ProviderApi } from '../http/provider-api';
import { findChange, sendChange } from './hetzner-changes';
import { hetznerReader, prepareOn } from './hetzner-reader';
import { refusalIn } from './hetzner-refusals';

interface HetznerOptions extends ApiOptions {
  /** The API token of one project. */
  token: string;
}

const openHetznerApi = ({ token, ...options }: HetznerOptions): ProviderApi =>
  openProviderApi({ ...options, headers: { authorization: `Bearer ${token}` }, refusalIn });

/** The provider lists a change within moments of accepting it. */
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
