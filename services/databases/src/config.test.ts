import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { serverShape, workerShape } from './config';

it('.env.example shows every variable of both processes, and what it is for', () => {
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(
    envExample({ ...serverShape, ...workerShape }),
  );
});
