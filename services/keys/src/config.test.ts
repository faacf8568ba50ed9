import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { readServerConfig, serverShape } from './config';

it('.env.example shows every variable, and what it is for', () => {
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(envExample(serverShape));
});

const secret = 'ab'.repeat(32);
const environment = { DATABASE_URL: 'postgresql://keys@localhost/keys', SERVICE_SECRET: secret, INTERNAL_TOKEN_SECRET: secret };

it('the secrets of the services and the peppers are read once, and refused when they are too short', () => {
  const config = readServerConfig({ ...environment, AUDIT_TOKEN_SECRETS: `{"hosting":"${secret}"}`, TOKEN_PEPPERS: `{"2":"${secret}"}` });
  expect([config.AUDIT_TOKEN_SECRETS, config.TOKEN_PEPPERS]).toEqual([{ hosting: secret }, { 2: secret }]);
  for (const value of ['{"hosting":"abcd"}', '[]', 'not json', '{"hosting":5}']) {
    expect(() => readServerConfig({ ...environment, AUDIT_TOKEN_SECRETS: value })).toThrow('AUDIT_TOKEN_SECRETS');
  }
  expect(() => readServerConfig({ ...environment, TOKEN_PEPPERS: `{"0":"${secret}"}` })).toThrow('TOKEN_PEPPERS');
});
