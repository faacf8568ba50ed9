import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { readServerConfig, serverShape, workerShape } from './config';

it('.env.example shows every variable of both processes, and what it is for', () => {
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(
    envExample({ ...serverShape, ...workerShape }),
  );
});

it.each([
  ['no JSON', '{'],
  ['for an unknown driver', '{"fsn":{"driver":"cloud","token":"s3cr3t"}}'],
  [
    'with a plan of a size without a price',
    '{"fsn":{"driver":"hetzner","url":"http://127.0.0.1","token":"s3cr3t","currency":"EUR","specs":{},"plans":{"s":"cpx11"}}}',
  ],
  [
    'for machines of a size that is not configured',
    '{"fsn":{"driver":"qemu","folder":"/m","images":{},"sizes":{},"currency":"EUR","specs":{"s3cr3t":{"hour_minor":1,"month_minor":1}}}}',
  ],
  [
    'with a price that the database cannot store',
    '{"fsn":{"driver":"hetzner","url":"http://127.0.0.1","token":"s3cr3t","currency":"EUR","specs":{"cpx11":{"hour_minor":1,"month_minor":3000000000}}}}',
  ],
])('refuses ranges that are %s, naming the variable and no credential', (_what, value) => {
  const read = () => readServerConfig({ COMPUTE_READER_TARGETS: value });
  expect(read).toThrow(/COMPUTE_READER_TARGETS is not valid/);
  expect(read).not.toThrow(/s3cr3t/);
});

it('the API has no token that changes machines, and says how to give it one that reads', () => {
  expect(Object.keys(serverShape)).not.toContain('COMPUTE_TARGETS');
  expect(() => readServerConfig({ COMPUTE_TARGETS: '{}' })).toThrow(/COMPUTE_READER_TARGETS is not set.*can only read/);
});
