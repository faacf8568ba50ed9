import * as apiKeys from '@drydock/contracts/keys/api-keys';
import * as auditLog from '@drydock/contracts/keys/audit-log';
import * as events from '@drydock/contracts/keys/events';
import * as orgs from '@drydock/contracts/keys/orgs';
import * as webhooks from '@drydock/contracts/keys/webhooks';
import * as workflows from '@drydock/contracts/keys/workflows';
import { type Route, route } from '@drydock/service/http';
import { createApiKey } from './api-keys/create-api-key';
import { getMe, listPermissions } from './api-keys/get-me';
import { getApiKey, listApiKeys } from './api-keys/list-api-keys';
import { revokeApiKey } from './api-keys/revoke-api-key';
import { rotateApiKey } from './api-keys/rotate-api-key';
import { updateApiKey } from './api-keys/update-api-key';
import { listAuditLog } from './audit/list-audit-log';
import type { HandlerContext } from './context/context';
import type { Tx } from './context/database.store';
import { getEvent, listEvents, watchEvents } from './events/read-events';
import { createOrg } from './orgs/create-org';
import { getOrg, listOrgs } from './orgs/list-orgs';
import { updateOrg } from './orgs/update-org';
import { listWebhookDeliveries, replayWebhookDelivery, testWebhook } from './webhooks/manage-deliveries';
import * as manage from './webhooks/manage-webhooks';
import { getWorkflow, listWorkflows } from './workflows/read-workflows';

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(apiKeys.createApiKey, createApiKey(context)),
  route(apiKeys.listApiKeys, listApiKeys(context)),
  route(apiKeys.getApiKey, getApiKey(context)),
  route(apiKeys.updateApiKey, updateApiKey(context)),
  route(apiKeys.revokeApiKey, revokeApiKey(context)),
  route(apiKeys.rotateApiKey, rotateApiKey(context)),
  route(apiKeys.getMe, getMe(context)),
  route(apiKeys.listPermissions, listPermissions(context)),
  route(orgs.listOrgs, listOrgs(context)),
  route(orgs.createOrg, createOrg()),
  route(orgs.getOrg, getOrg(context)),
  route(orgs.updateOrg, updateOrg(context)),
  route(auditLog.listAuditLog, listAuditLog(context)),
  route(events.listEvents, listEvents(context)),
  route(events.watchEvents, watchEvents(context)),
  route(events.getEvent, getEvent(context)),
  route(workflows.listWorkflows, listWorkflows(context)),
  route(workflows.getWorkflow, getWorkflow(context)),
  route(webhooks.listWebhooks, manage.listWebhooks(context)),
  route(webhooks.createWebhook, manage.createWebhook(context)),
  route(webhooks.getWebhook, manage.getWebhook(context)),
  route(webhooks.updateWebhook, manage.updateWebhook(context)),
  route(webhooks.deleteWebhook, manage.deleteWebhook()),
  route(webhooks.rotateWebhookSecret, manage.rotateWebhookSecret(context)),
  route(webhooks.testWebhook, testWebhook()),
  route(webhooks.listWebhookDeliveries, listWebhookDeliveries(context)),
  route(webhooks.replayWebhookDelivery, replayWebhookDelivery(context)),
];
