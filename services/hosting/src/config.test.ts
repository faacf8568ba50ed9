import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { serverShape, workerShape } from './config';

it('.env.example shows every variable of both processes, and what it is for', () => {
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(
    envExample({ ...serverShape, ...workerShape }),
  );
});

it('the API has no key to an archive, and nothing by which it could change the site host, the bucket or the vendor', () => {
  const shared = Object.keys(serverShape).filter((name) => Object.hasOwn(workerShape, name));
  for (const secret of [
    'ARCHIVE_KEY',
    'SITE_HOST_SECRET',
    'BACKUPS_S3_SECRET_ACCESS_KEY',
    'VENDOR_KEY',
    'VENDOR_SANDBOX_KEY',
  ]) {
    expect(Object.keys(workerShape)).toContain(secret);
    expect(shared).not.toContain(secret);
  }
});
