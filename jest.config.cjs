const { availableParallelism } = require('node:os');
const { transform } = require('./packages/testing/jest/transform.cjs');

// The library says in every worker that it will want a newer Node, which hides what the suites say.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

module.exports = {
  testEnvironment: 'node',
  testEnvironmentOptions: {
    globalsCleanup: 'on',
    customExportConditions: ['drydock-src', 'node', 'require', 'default'],
  },
  testMatch: ['<rootDir>/{packages,services,infra}/**/*.test.ts'],
  // The checks of form have a configuration of their own: packages/testing/conventions.jest.config.cjs.
  testPathIgnorePatterns: ['/node_modules/', '/dist/', '<rootDir>/packages/testing/src/conventions/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  // Which suites a run takes is said by each suite itself: packages/testing/README.md.
  filter: '<rootDir>/packages/testing/jest/filter.cjs',
  testSequencer: '<rootDir>/packages/testing/jest/sequencer.cjs',
  // No test is about its own duration: this is when to give up on a machine that is busy with other things. A long suite's tests do more each.
  testTimeout: process.env.DRYDOCK_TESTS === 'quick' ? 150_000 : 600_000,
  // Most suites wait for processes and servers. jest reads a percentage above 100 as a number of workers.
  maxWorkers: availableParallelism() + 2,
  globalSetup: '<rootDir>/packages/postgres/src/testing/jest-global-setup.ts',
  globalTeardown: '<rootDir>/packages/postgres/src/testing/jest-global-teardown.ts',
  reporters: ['<rootDir>/packages/testing/jest/only-asked.cjs', 'default'],
  transform,
};
