const { transform } = require('./jest/transform.cjs');

/** The checks of form, which `npm run check` runs. They only read files, so nothing has to be started before them. */
module.exports = {
  rootDir: '../..',
  testEnvironment: 'node',
  testMatch: ['<rootDir>/packages/testing/src/conventions/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  testTimeout: 150_000,
  transform,
};
