import { type ConformanceWorld, conformanceChecks } from '@drydock/service/testing/conformance';
import { type KeysApi, startKeys } from '../test/keys-api';

let api: KeysApi;
let world: ConformanceWorld;
beforeAll(async () => {
  api = await startKeys();
  const [{ caller: owner }, { caller: stranger }] = [await api.bootstrap(), await api.bootstrap({ newKey: true })];
  world = {
    call: (method, path, options) => api.call(options.caller, method, path, options),
    owner,
    // Keys and organisations stand outside the two modes.
    strangers: [stranger],
    makeThings: async (caller) => {
      const { id: keyId } = await api.mint(caller);
      const { id: orgId } = await api.createOrg(caller, { name: 'Reseller', permissions: ['apikeys.manage'] });
      return { params: { keyId, orgId } };
    },
    cannotSucceed: {},
  };
});
afterAll(() => api.close());

describe('every operation of keys', () => {
  // Each check has its own expectations.
  // oxlint-disable-next-line jest/expect-expect
  it.each(conformanceChecks('keys').map((check) => [check.name, check] as const))('%s', (_name, check) => check.run(world));
});
