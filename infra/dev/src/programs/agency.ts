import { type ProgramPlan, serviceEnvironment } from './program';

export const agencyPrograms: readonly ProgramPlan[] = [
  {
    name: 'agency',
    entry: 'services/agency/dist/server.js',
    tier: 'service',
    environment: (around) => serviceEnvironment('agency', around),
  },
];
