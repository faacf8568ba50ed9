import path from 'node:path';
import { type ProgramPlan, type Surroundings, urlOf } from './program';

/** The live project stands for a real one, the sandbox's for nobody's: neither sees the other's machines. */
export type EmulatorProject = 'live' | 'sandbox';

export const hetznerTokenOf = (project: EmulatorProject, around: Surroundings): string => around.derive(`hetzner-stand-in:${project}`);
export const hetznerReaderTokenOf = (project: EmulatorProject, around: Surroundings): string =>
  around.derive(`hetzner-stand-in:${project}:reader`);

/** Where the emulator is told what happens behind our back, and by which tokens. */
export const hetznerAdminOf = (around: Surroundings) => ({
  url: urlOf(around, 'hetzner-stand-in'),
  token: around.derive('hetzner-stand-in:admin'),
  projectTokens: { live: hetznerTokenOf('live', around), sandbox: hetznerTokenOf('sandbox', around) },
});

/** A cloud with machines, disks and images. What takes minutes there takes seconds here. */
export const hetznerEmulatorProgram: ProgramPlan = {
  name: 'hetzner-stand-in',
  entry: 'packages/emulators/dist/hetzner/hetzner-server.js',
  tier: 'host',
  environment: (around) => ({
    ...around.common,
    STATE_DIR: path.join(around.dataDir, 'hetzner'),
    PROJECT_TOKENS: `live=${hetznerTokenOf('live', around)},sandbox=${hetznerTokenOf('sandbox', around)}`,
    PROJECT_READER_TOKENS: `live=${hetznerReaderTokenOf('live', around)},sandbox=${hetznerReaderTokenOf('sandbox', around)}`,
    ADMIN_TOKEN: hetznerAdminOf(around).token,
    ACTION_SPEED: '4',
  }),
};
