import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { endpoints } from '@drydock/contracts/endpoints';
import { problems } from '@drydock/contracts/platform/problems';
import { assertContract } from '@drydock/service/testing/assert-contract';
import { until } from '@drydock/testing/wait';
import { type Demo, demoSchema } from '../demo/demo-file';

type Body = Record<string, unknown>;
type Params = Readonly<Record<string, string>>;

/** An operation of the OpenAPI document, with the example that a reader copies. */
interface Operation {
  method: string;
  path: string;
  example: Body | undefined;
  description: string;
}

/** The members of bodies, such as ids, for which the examples have placeholders. Each reader has other values. */
const ownMembers = [
  'backup_id',
  'copy_id',
  'column_id',
  'timestamp',
  'item_id',
  'endpoint',
  'region',
  'bucket',
  'access_key_id',
  'secret_access_key',
];

/**
 * The longest time for which a refused call is repeated, and the longest wait for the end of a workflow, in
 * milliseconds. It is long, because other suites may slow the machine down.
 */
const limitMs = 150_000;
const isPassing = (status: number, text: string): boolean =>
  status === 503 || (status === 422 && text.includes('"operation_in_progress"'));

export class Examples {
  /** The ids of the operations that succeeded. */
  readonly succeeded = new Set<string>();
  /** The ids of the operations that the demo refuses, as their descriptions say. */
  readonly refused = new Set<string>();
  private readonly demo: Demo;
  private readonly operations: ReadonlyMap<string, Operation>;

  private constructor(demo: Demo, operations: ReadonlyMap<string, Operation>) {
    this.demo = demo;
    this.operations = operations;
  }

  static async read(written: unknown): Promise<Examples> {
    const demo = demoSchema.parse(written);
    const document = (await (await fetch(new URL('/openapi.json', demo.base_url))).json()) as {
      paths: Record<
        string,
        Record<
          string,
          { operationId: string; description: string; requestBody?: { content: Record<string, { example: Body }> } }
        >
      >;
    };
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, description, requestBody }]): [string, Operation] => [
        operationId,
        { method: method.toUpperCase(), path, description, example: requestBody?.content['application/json']?.example },
      ]),
    );
    return new Examples(demo, new Map(operations));
  }

  get names(): string[] {
    return [...this.operations.keys()].sort();
  }

  /** Sends all examples, those of different resources at the same time. Throws all failures together. */
  async sendAll(): Promise<void> {
    const domains = [
      this.keys(),
      this.webhooks(),
      this.sites(),
      this.siteBackups(),
      this.application(),
      this.offsite(),
      this.vendor(),
    ];
    const ends = await Promise.allSettled([
      ...domains,
      this.deletedSites(),
      this.servers(),
      this.snapshots(),
      this.boards(),
      this.databases(),
    ]);
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('\n'));
  }

  /**
   * Sends the example of an operation, with the members of `own` in place of the placeholders. Repeats it while other
   * work locks the resource. If the example starts a workflow, waits for its end.
   */
  private async send(
    id: string,
    params: Params = {},
    own: Body = {},
    key: 'live_key' | 'staff_key' = 'live_key',
  ): Promise<Body> {
    const operation = this.operations.get(id);
    const endpoint = endpoints.find((known) => known.id === id);
    assert.ok(operation !== undefined && endpoint !== undefined, `${id} is not in the document`);
    assert.deepEqual(
      Object.keys(own).filter((name) => !ownMembers.includes(name)),
      [],
      `${id}: an example is sent as it stands`,
    );
    const path = operation.path.replace(
      /\{(\w+)\}/g,
      (_whole, name: string) => params[name] ?? assert.fail(`${id} needs ${name}`),
    );
    const body = operation.example === undefined ? undefined : { ...operation.example, ...own };
    const deadline = Date.now() + limitMs;
    for (;;) {
      const response = await this.fetch(path, key, { method: operation.method, body });
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
      const text = isStream ? await firstOf(response) : await response.text();
      const what = `${id} was answered ${response.status} ${text}`;
      const expected =
        endpoint.inDemo === undefined
          ? undefined
          : `${problems[endpoint.inDemo.problem].status} \`${endpoint.inDemo.problem}\``;
      if (expected === undefined && isPassing(response.status, text) && Date.now() < deadline) {
        await sleep(500);
        continue;
      }
      const answer = isStream || text === '' ? undefined : (JSON.parse(text) as Body);
      if (!isStream)
        assertContract(endpoint, {
          status: response.status,
          header: (name) => response.headers.get(name),
          body: answer,
        });
      if (expected !== undefined) {
        assert.equal(`${response.status} \`${String(answer?.['code'])}\``, expected, what);
        assert.ok(operation.description.includes(expected), `the description of ${id} says so`);
        this.refused.add(id);
        return {};
      }
      assert.equal(response.status, endpoint.response.status, what);
      if (response.status === 202) await this.follow(id, response.headers.get('location') ?? '');
      this.succeeded.add(id);
      return answer ?? {};
    }
  }

  private fetch(
    path: string,
    key: 'live_key' | 'staff_key',
    { method = 'GET', body }: { method?: string; body?: Body | undefined } = {},
  ) {
    return fetch(this.demo.base_url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.demo[key]}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
  }

  private async follow(id: string, location: string): Promise<void> {
    const workflow = await until(
      async () => {
        const read = (await (await this.fetch(location, 'staff_key')).json()) as { status: string; error: unknown };
        return !['queued', 'running'].includes(read.status) && read;
      },
      { timeoutMs: limitMs, everyMs: 200, what: `the end of ${location}, which ${id} began` },
    );
    assert.deepEqual([workflow.status, workflow.error], ['succeeded', null], `${id} ended so`);
  }

  private async idOf(id: string, params: Params = {}, own: Body = {}): Promise<string> {
    return String((await this.send(id, params, own))['id']);
  }

  /** Resolves with the first item of a list, as soon as there is one. */
  private firstIn(id: string, params: Params = {}, items = 'data'): Promise<Body> {
    return until(
      async () => {
        const found = (await this.send(id, params))[items];
        return Array.isArray(found) ? (found[0] as Body | undefined) : undefined;
      },
      { timeoutMs: limitMs, everyMs: 500, what: `something in ${id}` },
    );
  }

  private async workflows(resource: 'Site' | 'DeletedSite' | 'Server' | 'Database', params: Params): Promise<void> {
    const { id } = await this.firstIn(`list${resource}Workflows`, params);
    const own = { ...params, workflowId: String(id) };
    await this.send(`get${resource}Workflow`, own);
    await this.send(`watch${resource}Workflow`, own);
    for (const what of ['retry', 'abandon']) await this.send(`${what}${resource}Workflow`, own, {}, 'staff_key');
  }

  private async keys(): Promise<void> {
    for (const id of ['getMe', 'listPermissions', 'listApiKeys', 'listAuditLog']) await this.send(id);
    const keyId = await this.idOf('createApiKey');
    for (const id of ['getApiKey', 'updateApiKey', 'rotateApiKey', 'revokeApiKey']) await this.send(id, { keyId });
    const orgId = String((await this.send('createOrg', {}, {}, 'staff_key'))['id']);
    for (const id of ['listOrgs', 'getOrg', 'updateOrg']) await this.send(id, { orgId }, {}, 'staff_key');
    for (const id of ['setSiteQuota', 'setServerQuota', 'setDatabaseQuota'])
      await this.send(id, { orgId }, {}, 'staff_key');
    for (const id of ['getSiteQuota', 'getServerQuota', 'getDatabaseQuota']) await this.send(id);
    await this.send('getEvent', { eventId: String((await this.firstIn('listEvents'))['id']) });
    await this.send('watchEvents');
    await this.send('getWorkflow', { workflowId: String((await this.firstIn('listWorkflows'))['id']) });
  }

  private async webhooks(): Promise<void> {
    const webhookId = await this.idOf('createWebhook');
    for (const id of ['listWebhooks', 'getWebhook', 'testWebhook']) await this.send(id, { webhookId });
    const { id: deliveryId } = await this.firstIn('listWebhookDeliveries', { webhookId });
    await this.send('replayWebhookDelivery', { webhookId, deliveryId: String(deliveryId) });
    for (const id of ['rotateWebhookSecret', 'updateWebhook', 'deleteWebhook']) await this.send(id, { webhookId });
  }

  private async sites(): Promise<void> {
    await this.send('listSites');
    const siteId = await this.idOf('createSite');
    for (const id of ['getSite', 'getSiteStorage', 'updateSite', 'getSiteDomain', 'proveSiteDomain'])
      await this.send(id, { siteId });
    const { endpoint, region, bucket, access_key_id, secret_access_key } = this.demo.customer_storage ?? {};
    await this.send('putSiteOffsite', { siteId }, { endpoint, region, bucket, access_key_id, secret_access_key });
    for (const id of ['deleteSiteOffsite', 'preflightSiteDeletion', 'deleteSite']) await this.send(id, { siteId });
  }

  private async siteBackups(): Promise<void> {
    const siteId = this.demo.sites[1]?.id ?? '';
    await this.send('takeSiteBackup', { siteId });
    const backupId = String((await this.firstIn('listSiteBackups', { siteId }, 'backups'))['id']);
    for (const id of ['getSiteBackup', 'listSiteBackupSkipped']) await this.send(id, { siteId, backupId });
    for (const id of ['preflightSiteBackupRestore', 'restoreSiteBackup'])
      await this.send(id, { siteId }, { backup_id: backupId });
    await this.workflows('Site', { siteId });
  }

  private async application(): Promise<void> {
    const siteId = this.demo.app_site_id ?? '';
    for (const id of ['getSiteApp', 'preflightSiteAppRestart', 'restartSiteApp']) await this.send(id, { siteId });
  }

  private async offsite(): Promise<void> {
    const siteId = this.demo.offsite_site_id ?? '';
    await this.send('takeSiteOffsiteCopy', { siteId });
    const copyId = String((await this.firstIn('getSiteOffsite', { siteId }, 'copies'))['id']);
    await this.send('getSiteOffsiteCopy', { siteId, copyId });
    for (const id of ['preflightSiteOffsiteRestore', 'restoreSiteOffsite'])
      await this.send(id, { siteId }, { copy_id: copyId });
  }

  private async vendor(): Promise<void> {
    const siteId = this.demo.vendor_site_id ?? '';
    await this.send('takeSiteVendorSnapshot', { siteId });
    const point = async (): Promise<Body> => {
      const { item_id, points } = await this.firstIn('getSiteVendorSnapshots', { siteId }, 'databases');
      return { item_id, timestamp: (points as { timestamp: string }[])[0]?.timestamp };
    };
    await this.send('preflightSiteVendorRestore', { siteId }, await point());
    await this.send('restoreSiteVendorSnapshot', { siteId }, await point());
  }

  private async deletedSites(): Promise<void> {
    const deletedSiteId = this.demo.deleted_sites?.restorable ?? '';
    for (const id of ['listDeletedSites', 'getDeletedSite', 'preflightDeletedSiteRestore', 'restoreDeletedSite'])
      await this.send(id, { deletedSiteId });
    await this.workflows('DeletedSite', { deletedSiteId });
  }

  private async servers(): Promise<void> {
    await this.send('listComputeServers');
    const serverId = await this.idOf('orderComputeServer');
    for (const id of [
      'getComputeServer',
      'updateComputeServer',
      'preflightComputeServerRebuild',
      'rebuildComputeServer',
    ])
      await this.send(id, { serverId });
    for (const id of ['PowerOff', 'PowerOn', 'Reboot']) {
      await this.send(`preflightComputeServer${id}`, { serverId });
      await this.send(`${id.charAt(0).toLowerCase()}${id.slice(1)}ComputeServer`, { serverId });
    }
    for (const id of ['preflightComputeServerDeletion', 'deleteComputeServer']) await this.send(id, { serverId });
  }

  private async snapshots(): Promise<void> {
    const serverId = this.demo.servers?.[0]?.id ?? '';
    await this.send('takeServerSnapshot', { serverId });
    const snapshotId = String((await this.firstIn('listServerSnapshots', { serverId }))['id']);
    for (const id of [
      'getServerSnapshot',
      'preflightComputeServerRollback',
      'rollBackComputeServer',
      'deleteServerSnapshot',
    ])
      await this.send(id, { serverId, snapshotId });
    await this.workflows('Server', { serverId });
  }

  private async boards(): Promise<void> {
    await this.send('listBoards');
    const boardId = await this.idOf('createBoard');
    const [columnId, labelId] = [
      await this.idOf('createBoardColumn', { boardId }),
      await this.idOf('createBoardLabel', { boardId }),
    ];
    const cardId = await this.idOf('createCard', { boardId }, { column_id: columnId });
    const params = { boardId, columnId, labelId, cardId };
    for (const id of [
      'getBoard',
      'getBoardColumn',
      'getBoardLabel',
      'listCards',
      'getCard',
      'updateCard',
      'archiveCard',
      'restoreCard',
    ])
      await this.send(id, params);
    // A column with cards cannot be deleted. While cards are archived, the last column cannot be deleted either,
    // because a restored card would return to it.
    await this.send('archiveCard', params);
    await this.send('createBoardColumn', { boardId });
    for (const id of ['deleteBoardLabel', 'deleteBoardColumn', 'deleteBoard']) await this.send(id, params);
  }

  private async databases(): Promise<void> {
    for (const id of ['getDatabaseCatalogue', 'listDatabases']) await this.send(id);
    const made = await this.idOf('createDatabase');
    const databaseId = this.demo.databases?.[0]?.id ?? '';
    for (const id of ['getDatabase', 'getDatabaseStorage', 'updateDatabase', 'takeDatabaseBackup'])
      await this.send(id, { databaseId });
    const backupId = String((await this.firstIn('listDatabaseBackups', { databaseId }))['id']);
    for (const id of ['getDatabaseBackup', 'preflightDatabaseBackupRestore', 'restoreDatabaseBackup'])
      await this.send(id, { databaseId, backupId });
    await this.send('deleteDatabaseBackup', { databaseId, backupId });
    for (const id of ['preflightDatabaseUpgrade', 'upgradeDatabase']) await this.send(id, { databaseId });
    await this.workflows('Database', { databaseId });
    for (const id of ['preflightDatabaseDeletion', 'deleteDatabase']) await this.send(id, { databaseId: made });
  }
}

/** Returns the first chunk of a stream, and cancels the stream. */
async function firstOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}
