import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fetchEngine } from './fetch-engine';
import { compareVersions, labelOf, listFetched, readVersion } from './list-engines';

test('orders versions by their numbers', () => {
  const ordered = ['10.5', '10.11', '11.8'];
  expect([...ordered].reverse().sort(compareVersions)).toEqual(ordered);
  expect(compareVersions('10.11', '10.11.0')).toBe(0);
  expect(compareVersions('8.4', '9.7')).toBeLessThan(0);
});

test.each([
  [
    'mariadbd  Ver 10.11.18-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)',
    { flavour: 'mariadb', version: '10.11', release: '10.11.18' },
  ],
  [
    '/usr/sbin/mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))',
    { flavour: 'mysql', version: '8.0', release: '8.0.36' },
  ],
  ['some other program', null],
])('reads what a server says of itself: %s', (said, read) => {
  expect(readVersion(said)).toEqual(read);
});

test('an unknown name is answered with the names that there are, before anything is fetched', async () => {
  await expect(fetchEngine('mariadb@10.3', '/nowhere')).rejects.toThrow(/no mariadb@10\.3 .*mariadb@10\.11/);
});

test('an incomplete folder is not listed', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-engines-'));
  fs.mkdirSync(path.join(folder, 'mariadb-10.11/tree'), { recursive: true });
  expect(listFetched([folder, path.join(folder, 'missing')])).toEqual([]);
  fs.rmSync(folder, { recursive: true });
});

test('an engine has the name that people use', () => {
  expect(labelOf('mariadb', '10.11')).toBe('MariaDB 10.11');
  expect(labelOf('mysql', '9.7')).toBe('MySQL 9.7');
});
