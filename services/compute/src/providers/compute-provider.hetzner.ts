import type { Closing, ComputeDriver, ComputeReader } from './compute-provider';
import { type HetznerOptions, openHetznerApi } from './hetzner/hetzner-api';
import { sendChange } from './hetzner/hetzner-changes';
import { findChange } from './hetzner/hetzner-find';
import { hetznerReader, prepareOn } from './hetzner/hetzner-reader';

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
