import path from 'node:path';
import type { Caller } from '@drydock/service/access';
import { type ServiceApi, startServiceApi, type TestedService } from '@drydock/service/testing/service-api';
import { composeApi } from '../src/compose';
import { readServerConfig } from '../src/config';

export const compute: TestedService = {
  name: 'compute',
  dir: path.resolve(__dirname, '..'),
  compose: (environment) => composeApi(readServerConfig(environment)),
};

export interface Ranges {
  targets?: object;
  sandboxTargets?: object;
}

/** The read-only token of each test provider, by the provider's full token. */
export const readerTokens: ReadonlyMap<string, string> = new Map([
  ['live-token', 'live-reader-token'],
  ['sandbox-token', 'sandbox-reader-token'],
  ['live@pve!drydock=live-secret', 'live@pve!reader=live-reader-secret'],
]);

const forReaders = (ranges: object): object =>
  Object.fromEntries(
    Object.entries(ranges).map(([name, range]: [string, { token?: string }]) => [
      name,
      range.token === undefined ? range : { ...range, token: readerTokens.get(range.token) ?? range.token },
    ]),
  );

/** Returns the environment variables that give these targets to the API and to the worker. */
export const rangeSettings = ({ targets = {}, sandboxTargets = {} }: Ranges): Record<string, string> => ({
  COMPUTE_TARGETS: JSON.stringify(targets),
  SANDBOX_COMPUTE_TARGETS: JSON.stringify(sandboxTargets),
  COMPUTE_READER_TARGETS: JSON.stringify(forReaders(targets)),
  SANDBOX_COMPUTE_READER_TARGETS: JSON.stringify(forReaders(sandboxTargets)),
});

/**
 * Settings for tests that wait until an answer counts as lost. On a busy machine they can make a test fail, because a
 * slow call counts as lost and is never repeated.
 */
export const impatient = { lost_answer_seconds: 3, deadline_ms: 2_000 };

/** A target in the form of the configuration. */
export const targetConfig = (url: string, token: string, change: object = {}) => ({
  driver: 'hetzner',
  url,
  token,
  currency: 'EUR',
  specs: {
    cpx11: { hour_minor: 1, month_minor: 449 },
    cpx31: { hour_minor: 3, month_minor: 1590 },
    cax11: { hour_minor: 1, month_minor: 379 },
  },
  plans: { small: 'cpx11' },
  ...change,
});

/** Starts the API without a worker, so that accepted work stays queued. */
export const startApi = (caller: Caller, ranges: Ranges = {}): Promise<ServiceApi> =>
  startServiceApi(compute, caller, rangeSettings(ranges));
