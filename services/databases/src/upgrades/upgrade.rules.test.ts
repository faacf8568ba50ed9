import type { Major } from '@drydock/contracts/databases/major';
import { versionsOf } from '../catalogue/catalogue';
import { refuseUpgrade, type UpgradeWorld } from './upgrade-database';

const world = (
  change: Partial<UpgradeWorld['managed']> = {},
  unfinished: UpgradeWorld['unfinished'] = null,
): UpgradeWorld => ({
  managed: { engineVersion: '16', status: 'available', lastBackupAt: new Date(), ...change },
  unfinished,
  versions: versionsOf('postgres', []),
});
const mysql = (engineVersion: string, majors: readonly Major[] = ['10.5', '10.11', '11.8']): UpgradeWorld => ({
  ...world({ engineVersion }),
  versions: versionsOf('mysql', majors),
});
const running = { id: 'w', kind: 'take_database_backup', status: 'running' as const };

it.each(['17', '18'])('16 may be moved to %s', (target) => {
  expect(refuseUpgrade(world(), target)).toBeNull();
});

it.each([
  ['16', 'version_not_newer'],
  ['9', 'version_not_offered'],
  ['19', 'version_not_offered'],
  ['17.0', 'version_not_offered'],
  ['017', 'version_not_offered'],
  [' 17', 'version_not_offered'],
  ['latest', 'version_not_offered'],
  ['١٧', 'version_not_offered'],
])('16 may not be moved to %j: %s', (target, code) => {
  expect(refuseUpgrade(world(), target)).toEqual({ code });
});

it.each([
  ['10.11', '9.7', 'engine_differs'],
  ['8.4', '11.8', 'engine_differs'],
  ['10.11', '10.5', 'version_not_newer'],
  ['8.4', '9.7', 'version_not_offered'],
  ['10.11', '10.12', 'version_not_offered'],
  ['10.11', '18', 'version_not_offered'],
])('%s of MySQL or MariaDB may not be moved to %s: %s', (from, target, code) => {
  expect(refuseUpgrade(mysql(from), target)).toEqual({ code });
});

it.each([
  ['10.5', '10.11'],
  ['10.5', '11.8'],
  ['10.11', '11.8'],
])('MariaDB %s may be moved to %s where the host has its programs, and nowhere else', (from, target) => {
  expect(refuseUpgrade(mysql(from), target)).toBeNull();
  expect(refuseUpgrade(mysql(from, [from]), target)).toEqual({ code: 'version_not_offered' });
});

it('what is refused for several reasons is refused for the first in the order of the specification', () => {
  const bad = { engineVersion: '17', status: 'failed' as const, lastBackupAt: null };
  expect(refuseUpgrade(world(bad, running), 'x')?.code).toBe('operation_in_progress');
  expect(refuseUpgrade(world(bad, { ...running, status: 'needs_attention' }), 'x')?.code).toBe('needs_attention');
  expect(refuseUpgrade(world(bad), 'x')?.code).toBe('version_not_offered');
  expect(refuseUpgrade(world(bad), '16')?.code).toBe('version_not_newer');
  expect(refuseUpgrade(world(bad), '18')?.code).toBe('never_backed_up');
  expect(refuseUpgrade(world({ ...bad, lastBackupAt: new Date() }), '18')?.code).toBe('database_not_available');
});
