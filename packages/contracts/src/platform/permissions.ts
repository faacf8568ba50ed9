import { z } from 'zod';

/** The permissions of a key and their meanings, in the order in which GET /v1/permissions lists them. */
export const permissionMeanings = {
  'apikeys.manage': 'Mint, list, rotate and revoke API keys in the organisation and below it',
  'orgs.view': 'See the organisations in the subtree',
  'orgs.manage': 'Create organisations below and change their name and permissions',
  'sites.view': 'See sites, servers and their workflows',
  'sites.create': 'Create sites, order servers, bring deleted sites back',
  'sites.delete': 'Delete sites and servers, roll servers back and rebuild them',
  'compute.power.manage': 'Power servers on and off and restart them',
  'hosting.backup.manage': 'Take and restore backups',
  'hosting.deploy.manage': 'Restart applications',
  'agency.boards.view': 'See boards and cards',
  'agency.boards.manage': 'Change boards and cards',
  'databases.view': 'See managed databases',
  'databases.manage': 'Create, upgrade and delete managed databases',
  'audit.view': 'Read the audit log',
  'webhooks.manage': 'Have events sent to URLs',
  'platform.staff': 'Retry and abandon workflows that wait for staff',
} as const;

export type Permission = keyof typeof permissionMeanings;

export const isPermission = (value: string): value is Permission => Object.hasOwn(permissionMeanings, value);
export const permissions: readonly Permission[] = Object.keys(permissionMeanings).filter(isPermission);
export const permissionSchema = z.enum(Object.keys(permissionMeanings).filter(isPermission)).meta({ id: 'Permission' });
