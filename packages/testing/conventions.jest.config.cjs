const { transform } = require('./jest/transform.cjs');

/** The configuration for the tests of the conventions. They need no set-up, because they start no database or queue. */
module.exports = {
  rootDir: '../..',
  testEnvironment: 'node',
  testMatch: ['<rootDir>/packages/testing/src/conventions/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  testTimeout: 150_000,
  transform,
};
