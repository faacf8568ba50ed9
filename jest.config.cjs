module.exports = {
  testEnvironment: 'node',
  testEnvironmentOptions: { globalsCleanup: 'on', customExportConditions: ['drydock-src', 'node', 'require', 'default'] },
  testMatch: ['<rootDir>/{packages,services,infra}/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  modulePathIgnorePatterns: ['<rootDir>/.*/dist/', '<rootDir>/.data/'],
  testTimeout: 60_000,
  globalSetup: '<rootDir>/packages/test-kit/src/jest-global-setup.ts',
  globalTeardown: '<rootDir>/packages/test-kit/src/jest-global-teardown.ts',
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'commonjs' }, sourceMaps: 'inline' },
    ],
  },
};
