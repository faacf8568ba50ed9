import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { siteHostConfigShape } from './config';

it('.env.example shows every variable, and what it is for', () => {
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(envExample(siteHostConfigShape));
});
