import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { readServerConfig, serverShape, workerShape } from './config';

it('.env.example shows every variable of both processes, and what it is for', () => {
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(
    envExample({ ...serverShape, ...workerShape }),
  );
});

const secret = 'ab'.repeat(32);
const secrets = { SERVICE_SECRET: secret, INTERNAL_TOKEN_SECRET: secret, WEBHOOK_SECRET: secret };
const environment = { DATABASE_URL: 'postgresql://keys@localhost/keys', ...secrets };

it('the secrets of the services and the peppers are read once, and refused when they are too short', () => {
  const config = readServerConfig({
    ...environment,
    AUDIT_TOKEN_SECRETS: `{"hosting":"${secret}"}`,
    TOKEN_PEPPERS: `{"2":"${secret}"}`,
  });
  expect([config.AUDIT_TOKEN_SECRETS, config.TOKEN_PEPPERS]).toEqual([{ hosting: secret }, { 2: secret }]);
  for (const value of ['{"hosting":"abcd"}', '[]', 'not json', '{"hosting":5}']) {
    expect(() => readServerConfig({ ...environment, AUDIT_TOKEN_SECRETS: value })).toThrow('AUDIT_TOKEN_SECRETS');
  }
  expect(() => readServerConfig({ ...environment, TOKEN_PEPPERS: `{"0":"${secret}"}` })).toThrow('TOKEN_PEPPERS');
});

it('the worker, which calls customers’ addresses, holds no secret but its database’s and the webhooks’', () => {
  const isSecret = (name: string) => /SECRET|PEPPER|URL/.test(name);
  expect(Object.keys(workerShape).filter(isSecret)).toEqual(['DATABASE_URL', 'WEBHOOK_SECRET']);
});
