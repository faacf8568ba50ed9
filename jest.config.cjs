const { availableParallelism } = require('node:os');
const { transform } = require('./packages/testing/jest/transform.cjs');

// The AWS SDK would print in every worker that its versions of 2027 need a newer Node, and hide the output of suites.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

module.exports = {
  testEnvironment: 'node',
  testEnvironmentOptions: {
    globalsCleanup: 'on',
    customExportConditions: ['drydock-src', 'node', 'require', 'default'],
  },
  testMatch: ['<rootDir>/{packages,services,infra}/**/*.test.ts'],
  // The tests of the conventions have a configuration of their own: packages/testing/conventions.jest.config.cjs.
  testPathIgnorePatterns: ['/node_modules/', '/dist/', '<rootDir>/packages/testing/src/conventions/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  // The filter reads in each suite which runs it belongs to (packages/testing/README.md).
  filter: '<rootDir>/packages/testing/jest/filter.cjs',
  testSequencer: '<rootDir>/packages/testing/jest/sequencer.cjs',
  // In milliseconds. The limit only ends tests that hang. It is high, because the machine may be busy with other work,
  // and because a single test of a long suite does more.
  testTimeout: process.env.DRYDOCK_TESTS === 'quick' ? 150_000 : 600_000,
  // There are more workers than processors, because most suites wait for processes and servers. The number is computed
  // here, because Jest reads a percentage above 100 as a number of workers.
  maxWorkers: availableParallelism() + 2,
  globalSetup: '<rootDir>/packages/postgres/src/testing/jest-global-setup.ts',
  globalTeardown: '<rootDir>/packages/postgres/src/testing/jest-global-teardown.ts',
  reporters: ['<rootDir>/packages/testing/jest/only-asked.cjs', 'default'],
  transform,
};
