import path from 'node:path';
import { type ProgramPlan, type Surroundings, urlOf } from './program';

/** The live account stands for a real vendor's, the sandbox's for nobody's: neither sees the other's packages. */
const keyOf = (account: 'live' | 'sandbox', around: Surroundings): string => around.derive(`vendor-stand-in:${account}`);

/** Where the emulator is told what happens behind our back, and by which token. */
export const vendorAdminOf = (around: Surroundings): { url: string; token: string } => ({
  url: urlOf(around, 'vendor-stand-in'),
  token: around.derive('vendor-stand-in:admin'),
});

const readerKeyOf = (account: 'live' | 'sandbox', around: Surroundings): string => around.derive(`vendor-stand-in:${account}:reader`);

const vendorUrls = (around: Surroundings): Record<string, string> => ({
  VENDOR_URL: urlOf(around, 'vendor-stand-in'),
  VENDOR_SANDBOX_URL: urlOf(around, 'vendor-stand-in'),
});

/** What hosting's worker needs to have sites of platform vendor. */
export const vendorEnvironment = (around: Surroundings): Record<string, string> => ({
  ...vendorUrls(around),
  VENDOR_KEY: keyOf('live', around),
  VENDOR_SANDBOX_KEY: keyOf('sandbox', around),
});

/** What its API needs to look at them. */
export const vendorReaderEnvironment = (around: Surroundings): Record<string, string> => ({
  ...vendorUrls(around),
  VENDOR_READER_KEY: readerKeyOf('live', around),
  VENDOR_SANDBOX_READER_KEY: readerKeyOf('sandbox', around),
});

/** A hosting vendor with packages and their timelines. Its jobs take three seconds here, minutes at a real one. */
export const vendorEmulatorProgram: ProgramPlan = {
  name: 'vendor-stand-in',
  entry: 'packages/emulators/dist/vendor/vendor-server.js',
  tier: 'host',
  environment: (around) => ({
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 'vendor'),
    ACCOUNT_KEYS: `live=${keyOf('live', around)},sandbox=${keyOf('sandbox', around)}`,
    ACCOUNT_READER_KEYS: `live=${readerKeyOf('live', around)},sandbox=${readerKeyOf('sandbox', around)}`,
    ADMIN_TOKEN: vendorAdminOf(around).token,
    JOB_SECONDS: '3',
  }),
};
