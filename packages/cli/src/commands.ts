import { type OperationId, operations } from './generated/contract';
import { clean } from './output';

export interface CommandPlan {
  /** The command's words. Its arguments and options come from the contract. */
  command: string;
  /**
   * The columns of the printed table. Default: the columns of the started workflow for long work, the ids for a list,
   * and all fields for any other answer.
   */
  columns?: readonly string[];
  /**
   * If set, the user must type a name before the call. With `argument`, the name is the command's last argument.
   * Otherwise `asks` is the id of the operation whose answer has the name.
   */
  asks?: OperationId | 'argument';
  /** Whether the group's name alone runs this command. Example: `drydock events` runs `drydock events list`. */
  isDefault?: boolean;
  /** The operation whose event stream the option `--follow` prints. */
  follow?: OperationId;
}

/** The plan of an operation that has no command of its own. The command of `dryRunOf` calls it for `--dry-run`. */
export interface DryRun {
  dryRunOf: OperationId;
}

const workflow = ['id', 'kind', 'status', 'progress', 'created_at', 'finished_at'];
const backup = ['id', 'kind', 'status', 'size_bytes', 'created_at', 'completed_at'];
const site = ['id', 'name', 'primary_domain', 'platform', 'status', 'created_at'];
const server = ['id', 'name', 'status', 'power_state', 'spec', 'zone', 'addresses'];
const database = ['id', 'label', 'engine', 'engine_version', 'size', 'status', 'created_at'];
const snapshot = ['id', 'description', 'status', 'size_gb', 'created_at'];
const key = ['id', 'name', 'prefix', 'sandbox', 'last_used_at', 'created_at'];

/**
 * The plans of all operations of the contract: each has a command, or is the dry run of another operation. TypeScript
 * reports an operation that is missing here.
 */
export const plans: Readonly<Record<OperationId, CommandPlan | DryRun>> = {
  getMe: { command: 'whoami', columns: ['key.name', 'key.prefix', 'org.name', 'org.id', 'mode', 'scopes'] },

  listSites: { command: 'sites list', columns: site },
  createSite: { command: 'sites create', columns: site },
  getSite: { command: 'sites get' },
  getSiteStorage: { command: 'sites storage' },
  updateSite: { command: 'sites update' },
  deleteSite: { command: 'sites delete', asks: 'getSite' },
  preflightSiteDeletion: { dryRunOf: 'deleteSite' },
  restoreSiteBackup: { command: 'sites restore', asks: 'getSite' },
  preflightSiteBackupRestore: { dryRunOf: 'restoreSiteBackup' },
  getSiteQuota: { command: 'sites quota get' },
  setSiteQuota: { command: 'sites quota set' },
  getSiteApp: { command: 'sites app get' },
  restartSiteApp: { command: 'sites app restart', asks: 'getSite' },
  preflightSiteAppRestart: { dryRunOf: 'restartSiteApp' },
  getSiteDomain: { command: 'sites domain get' },
  proveSiteDomain: { command: 'sites domain prove' },

  listSiteBackups: { command: 'backups list', columns: backup },
  takeSiteBackup: { command: 'backups take' },
  getSiteBackup: { command: 'backups get' },
  listSiteBackupSkipped: { command: 'backups skipped', columns: ['path', 'reason'] },

  getSiteOffsite: { command: 'offsite get', columns: ['id', 'kind', 'status', 'size_bytes', 'created_at'] },
  putSiteOffsite: { command: 'offsite set' },
  deleteSiteOffsite: { command: 'offsite delete', asks: 'getSite' },
  takeSiteOffsiteCopy: { command: 'offsite copy' },
  getSiteOffsiteCopy: { command: 'offsite copies get' },
  restoreSiteOffsite: { command: 'offsite restore', asks: 'getSite' },
  preflightSiteOffsiteRestore: { dryRunOf: 'restoreSiteOffsite' },

  getSiteVendorSnapshots: { command: 'vendor-snapshots get' },
  takeSiteVendorSnapshot: { command: 'vendor-snapshots take' },
  restoreSiteVendorSnapshot: { command: 'vendor-snapshots restore', asks: 'getSite' },
  preflightSiteVendorRestore: { dryRunOf: 'restoreSiteVendorSnapshot' },

  listDeletedSites: {
    command: 'deleted-sites list',
    columns: ['id', 'primary_domain', 'reason', 'deleted_at', 'purge_due_at', 'restorable'],
  },
  getDeletedSite: { command: 'deleted-sites get' },
  restoreDeletedSite: { command: 'deleted-sites restore', asks: 'getDeletedSite' },
  preflightDeletedSiteRestore: { dryRunOf: 'restoreDeletedSite' },

  listComputeServers: { command: 'servers list', columns: server },
  orderComputeServer: { command: 'servers order', columns: server },
  getServerQuota: { command: 'servers quota get' },
  setServerQuota: { command: 'servers quota set' },
  getComputeServer: { command: 'servers get' },
  updateComputeServer: { command: 'servers update' },
  deleteComputeServer: { command: 'servers delete', asks: 'getComputeServer' },
  preflightComputeServerDeletion: { dryRunOf: 'deleteComputeServer' },
  powerOnComputeServer: { command: 'servers power-on' },
  preflightComputeServerPowerOn: { dryRunOf: 'powerOnComputeServer' },
  powerOffComputeServer: { command: 'servers power-off', asks: 'getComputeServer' },
  preflightComputeServerPowerOff: { dryRunOf: 'powerOffComputeServer' },
  rebootComputeServer: { command: 'servers reboot', asks: 'getComputeServer' },
  preflightComputeServerReboot: { dryRunOf: 'rebootComputeServer' },
  rebuildComputeServer: { command: 'servers rebuild', asks: 'getComputeServer' },
  preflightComputeServerRebuild: { dryRunOf: 'rebuildComputeServer' },
  rollBackComputeServer: { command: 'servers rollback', asks: 'getComputeServer' },
  preflightComputeServerRollback: { dryRunOf: 'rollBackComputeServer' },
  listServerSnapshots: { command: 'servers snapshots list', columns: snapshot },
  getServerSnapshot: { command: 'servers snapshots get' },
  takeServerSnapshot: { command: 'servers snapshots take', columns: snapshot },
  deleteServerSnapshot: { command: 'servers snapshots delete', asks: 'argument' },

  listDatabases: { command: 'databases list', columns: database },
  createDatabase: { command: 'databases create', columns: [...database, 'username', 'password'] },
  getDatabase: { command: 'databases get' },
  getDatabaseStorage: { command: 'databases storage' },
  updateDatabase: { command: 'databases update' },
  deleteDatabase: { command: 'databases delete', asks: 'getDatabase' },
  preflightDatabaseDeletion: { dryRunOf: 'deleteDatabase' },
  upgradeDatabase: { command: 'databases upgrade', asks: 'getDatabase' },
  preflightDatabaseUpgrade: { dryRunOf: 'upgradeDatabase' },
  restoreDatabaseBackup: { command: 'databases restore', asks: 'getDatabase' },
  preflightDatabaseBackupRestore: { dryRunOf: 'restoreDatabaseBackup' },
  getDatabaseCatalogue: { command: 'databases catalogue' },
  getDatabaseQuota: { command: 'databases quota get' },
  setDatabaseQuota: { command: 'databases quota set' },
  listDatabaseBackups: { command: 'databases backups list', columns: backup },
  takeDatabaseBackup: { command: 'databases backups take', columns: backup },
  deleteDatabaseBackup: { command: 'databases backups delete', asks: 'argument' },
  getDatabaseBackup: { command: 'databases backups get' },

  listWorkflows: {
    command: 'workflows list all',
    columns: ['id', 'kind', 'status', 'resource', 'created_at', 'updated_at'],
  },
  getWorkflow: { command: 'workflows find' },
  listSiteWorkflows: { command: 'workflows list site', columns: workflow },
  getSiteWorkflow: { command: 'workflows get site' },
  watchSiteWorkflow: { command: 'workflows watch site' },
  retrySiteWorkflow: { command: 'workflows retry site' },
  abandonSiteWorkflow: { command: 'workflows abandon site', asks: 'getSite' },
  listDeletedSiteWorkflows: { command: 'workflows list deleted-site', columns: workflow },
  getDeletedSiteWorkflow: { command: 'workflows get deleted-site' },
  watchDeletedSiteWorkflow: { command: 'workflows watch deleted-site' },
  retryDeletedSiteWorkflow: { command: 'workflows retry deleted-site' },
  abandonDeletedSiteWorkflow: { command: 'workflows abandon deleted-site', asks: 'getDeletedSite' },
  listServerWorkflows: { command: 'workflows list server', columns: workflow },
  getServerWorkflow: { command: 'workflows get server' },
  watchServerWorkflow: { command: 'workflows watch server' },
  retryServerWorkflow: { command: 'workflows retry server' },
  abandonServerWorkflow: { command: 'workflows abandon server', asks: 'getComputeServer' },
  listDatabaseWorkflows: { command: 'workflows list database', columns: workflow },
  getDatabaseWorkflow: { command: 'workflows get database' },
  watchDatabaseWorkflow: { command: 'workflows watch database' },
  retryDatabaseWorkflow: { command: 'workflows retry database' },
  abandonDatabaseWorkflow: { command: 'workflows abandon database', asks: 'getDatabase' },

  listBoards: { command: 'boards list', columns: ['id', 'name', 'created_at'] },
  createBoard: { command: 'boards create' },
  getBoard: { command: 'boards get' },
  deleteBoard: { command: 'boards delete', asks: 'getBoard' },
  createBoardColumn: { command: 'boards columns create' },
  getBoardColumn: { command: 'boards columns get' },
  deleteBoardColumn: { command: 'boards columns delete', asks: 'getBoardColumn' },
  createBoardLabel: { command: 'boards labels create' },
  getBoardLabel: { command: 'boards labels get' },
  deleteBoardLabel: { command: 'boards labels delete', asks: 'getBoardLabel' },
  listCards: { command: 'cards list', columns: ['id', 'title', 'column_id', 'position', 'visibility', 'due_at'] },
  createCard: { command: 'cards create' },
  getCard: { command: 'cards get' },
  updateCard: { command: 'cards update' },
  archiveCard: { command: 'cards archive' },
  restoreCard: { command: 'cards restore' },

  listApiKeys: { command: 'keys list', columns: key },
  getApiKey: { command: 'keys get' },
  createApiKey: { command: 'keys mint' },
  updateApiKey: { command: 'keys update' },
  revokeApiKey: { command: 'keys revoke', asks: 'getApiKey' },
  rotateApiKey: { command: 'keys rotate', asks: 'getApiKey' },
  listPermissions: { command: 'permissions list', columns: ['key', 'held', 'meaning'] },
  listOrgs: { command: 'orgs list', columns: ['id', 'name', 'parent_id', 'created_at'] },
  createOrg: { command: 'orgs create' },
  getOrg: { command: 'orgs get' },
  updateOrg: { command: 'orgs update' },
  listAuditLog: { command: 'audit list', columns: ['at', 'action', 'target', 'actor_key_id', 'workflow_id'] },
  listEvents: {
    command: 'events list',
    columns: ['at', 'type', 'resource', 'workflow.kind', 'workflow.status', 'id'],
    isDefault: true,
    follow: 'watchEvents',
  },
  getEvent: { command: 'events get' },
  watchEvents: { command: 'events watch' },

  listWebhooks: { command: 'webhooks list', columns: ['id', 'url', 'event_types', 'enabled', 'failing_since'] },
  createWebhook: { command: 'webhooks create' },
  getWebhook: { command: 'webhooks get' },
  updateWebhook: { command: 'webhooks update' },
  deleteWebhook: { command: 'webhooks delete', asks: 'getWebhook' },
  rotateWebhookSecret: { command: 'webhooks rotate-secret', asks: 'getWebhook' },
  testWebhook: { command: 'webhooks test' },
  listWebhookDeliveries: {
    command: 'webhooks deliveries',
    columns: ['id', 'event_type', 'resource', 'status', 'attempts', 'last_status', 'last_error', 'next_attempt_at'],
  },
  replayWebhookDelivery: { command: 'webhooks replay' },
};

/** The descriptions of groups of commands. A key is the words with which all commands of the group begin. */
export const groups: Readonly<Record<string, string>> = {
  sites: 'Sites, and the restore of one',
  'sites quota': 'How many sites an organisation may have',
  'sites app': 'The application of a site',
  'sites domain': 'The domain of a site',
  backups: 'Backups of a site',
  offsite: 'Copies of a site in its owner’s bucket',
  'offsite copies': 'The copies in that bucket',
  'vendor-snapshots': 'Timelines that a vendor keeps of a site',
  'deleted-sites': 'Sites that were deleted, and bringing one back',
  servers: 'Servers, and the rollback of one',
  'servers quota': 'How many servers an organisation may have',
  'servers snapshots': 'Snapshots of a server',
  databases: 'Managed databases, and the upgrade of one',
  'databases quota': 'How many databases an organisation may have',
  'databases backups': 'Backups of a database',
  workflows: 'Long work: what was and is being done',
  'workflows list': 'What was and is being done to a resource',
  'workflows get': 'One workflow with its steps',
  'workflows watch': 'Follow a workflow to its end',
  'workflows retry': 'Staff: go on with a workflow that needs attention',
  'workflows abandon': 'Staff: give up a workflow that needs attention',
  boards: 'Boards of an agency',
  'boards columns': 'Columns of a board',
  'boards labels': 'Labels of a board',
  cards: 'Cards of a board',
  keys: 'API keys',
  permissions: 'What a key may be allowed',
  orgs: 'Organisations',
  audit: 'The audit log',
  events: 'What happens, as a list or as it comes',
  webhooks: 'URLs that events are sent to',
  contexts: 'Installations and the keys for them',
};

/** The ids of all operations, in the order in which the help lists their commands. */
export const operationIds = Object.keys(plans).filter((id): id is OperationId => Object.hasOwn(operations, id));

/**
 * Returns the plan of an operation's command. For a dry run, returns the plan of the operation that `dryRunOf` names.
 */
export function planOf(id: OperationId): CommandPlan {
  const plan = plans[id];
  return 'command' in plan ? plan : planOf(plan.dryRunOf);
}

export const commandOf = (id: OperationId): string => planOf(id).command;

/** Returns the operation that shows what operation `id` would do, without doing it. */
export const dryRunFor = (id: OperationId): OperationId | undefined =>
  operationIds.find((other) => {
    const plan = plans[other];
    return 'dryRunOf' in plan && plan.dryRunOf === id;
  });

/** Returns the command that follows the workflow at this path, or the HTTP request if no command does. */
export function watchOf(path: string): string {
  for (const id of operationIds.filter((id) => operations[id].isStream)) {
    const pattern = operations[id].path.replace(/\/events$/, '').replace(/\{\w+\}/g, '([^/?]+)');
    const found = new RegExp(`^${pattern}$`).exec(path);
    if (found !== null) return clean(`drydock ${commandOf(id)} ${found.slice(1).join(' ')}`);
  }
  return clean(`GET ${path}`);
}
