import { z } from 'zod';
import { describeConfig, readConfig } from './config';
import { secretField, serviceFields } from './config-fields';
import { deriveKey } from './secrets';

const shape = { ...serviceFields('hosting'), EXTRA: z.string().optional().meta({ description: 'Something' }) };
const environment = {
  DATABASE_URL: 'postgresql://u:p@127.0.0.1/db',
  SERVICE_SECRET: 'ab'.repeat(32),
  INTERNAL_TOKEN_SECRET: 'cd'.repeat(32),
  AUDIT_TOKEN_SECRET: 'ef'.repeat(32),
  KEYS_URL: 'http://127.0.0.1:1',
};

test('a full environment is read with its defaults, and nothing that is not in the shape', () => {
  expect(readConfig(shape, { ...environment, PORT: '8081', LOG_LEVEL: '', OTHER: 'x' })).toEqual({
    ...environment,
    SERVICE_NAME: 'hosting',
    HOST: '127.0.0.1',
    PORT: 8081,
    LOG_LEVEL: 'info',
  });
});

test('every variable that is missing or wrong is named with its purpose, and no value is shown', () => {
  const read = () => readConfig(shape, { ...environment, KEYS_URL: undefined, SERVICE_SECRET: 'hunter2', PORT: '99999' });
  expect(read).toThrow(/KEYS_URL is not set: Where keys listens/);
  expect(read).toThrow(/SERVICE_SECRET is not valid \(must be at least 32 bytes of hex\)/);
  expect(read).toThrow(/PORT is not valid/);
  expect(read).not.toThrow(/hunter2/);
});

test('a description says what is required, its default, and hides secrets', () => {
  const described = describeConfig({ ...shape, PEPPER: secretField('x').default('ab'.repeat(32)) });
  const named = (name: string) => described.find((variable) => variable.name === name);
  expect(named('KEYS_URL')).toMatchObject({ required: true, default: undefined, secret: false });
  expect(named('PORT')).toMatchObject({ required: false, default: '0' });
  expect(named('SERVICE_SECRET')).toMatchObject({ required: true, secret: true });
  expect(named('PEPPER')).toMatchObject({ required: false, default: undefined });
  expect(described.every(({ description }) => description !== '')).toBe(true);
});

test('sub-keys differ by label and need a whole secret', () => {
  expect(deriveKey(environment.SERVICE_SECRET, 'a')).toEqual(deriveKey(environment.SERVICE_SECRET, 'a'));
  expect(deriveKey(environment.SERVICE_SECRET, 'a').equals(deriveKey(environment.SERVICE_SECRET, 'b'))).toBe(false);
  expect(() => deriveKey('abcd', 'a')).toThrow(/32 bytes/);
});
