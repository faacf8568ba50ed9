import * as apiKeys from '@drydock/contracts/keys/api-keys';
import * as events from '@drydock/contracts/keys/events';
import * as orgs from '@drydock/contracts/keys/orgs';
import * as webhooks from '@drydock/contracts/keys/webhooks';
import { type Route, route } from '@drydock/service/http';
import { revokeApiKey, updateApiKey } from './api-keys/change-api-key';
import { getApiKey, getMe, listApiKeys, listPermissions } from './api-keys/list-api-keys';
import { createApiKey, rotateApiKey } from './api-keys/mint-key';
import { listAuditLog } from './audit/audit-log';
import type { HandlerContext } from './context/context';
import type { Tx } from './context/database.store';
import { getEvent, listEvents, watchEvents } from './events/read-events';
import { createOrg, getOrg, listOrgs, updateOrg } from './orgs/manage-orgs';
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
  route(events.listAuditLog, listAuditLog(context)),
  route(events.listEvents, listEvents(context)),
  route(events.watchEvents, watchEvents(context)),
  route(events.getEvent, getEvent(context)),
  route(events.listWorkflows, listWorkflows(context)),
  route(events.getWorkflow, getWorkflow(context)),
  route(webhooks.listWebhooks, manage.listWebhooks(context)),
  route(webhooks.createWebhook, manage.createWebhook(context)),
  route(webhooks.getWebhook, manage.getWebhook(context)),
  route(webhooks.updateWebhook, manage.updateWebhook(context)),
  route(webhooks.deleteWebhook, manage.deleteWebhook()),
  route(webhooks.rotateWebhookSecret, manage.rotateWebhookSecret(context)),
  route(webhooks.testWebhook, manage.testWebhook()),
  route(webhooks.listWebhookDeliveries, manage.listWebhookDeliveries(context)),
  route(webhooks.replayWebhookDelivery, manage.replayWebhookDelivery(context)),
];
