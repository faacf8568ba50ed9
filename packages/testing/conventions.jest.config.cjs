const { transform } = require('./jest/transform.cjs');

/** The checks of form, which `npm run check` runs: they read files, and need neither a database nor anything else that is started before. */
module.exports = {
  rootDir: '../..',
  testEnvironment: 'node',
  testMatch: ['<rootDir>/packages/testing/src/conventions/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  testTimeout: 150_000,
  transform,
};
