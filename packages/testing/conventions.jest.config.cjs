const { transform } = require('./jest/transform.cjs');

/**
 * The configuration for the tests that check the form of the tree. They need no set-up, because they only read files.
 */
module.exports = {
  rootDir: '../..',
  testEnvironment: 'node',
  testMatch: ['<rootDir>/packages/testing/src/conventions/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  testTimeout: 150_000,
  transform,
};
