import type { Route } from '@drydock/service-kit/route';
import { listBackups } from './backups/list-backups';
import { preflightRestore } from './backups/preflight-restore';
import { restoreBackup } from './backups/restore-backup';
import { takeBackup } from './backups/take-backup';
import type { HandlerContext } from './context';
import type { Tx } from './database.store';
import { abandonWorkflow } from './site-workflows/abandon-workflow';
import { getWorkflow } from './site-workflows/get-workflow';
import { listWorkflows } from './site-workflows/list-workflows';
import { retryWorkflow } from './site-workflows/retry-workflow';
import { watchWorkflow } from './site-workflows/watch-workflow';
import { createSite } from './sites/create-site';
import { deleteSite } from './sites/delete-site';
import { getSite } from './sites/get-site';
import { listSites } from './sites/list-sites';

const handlers = [
  ...[listSites, createSite, getSite, deleteSite],
  ...[listBackups, takeBackup, restoreBackup, preflightRestore],
  ...[listWorkflows, getWorkflow, watchWorkflow, retryWorkflow, abandonWorkflow],
];

export const routes = (context: HandlerContext): Route<Tx>[] => handlers.map((handler) => handler(context));
