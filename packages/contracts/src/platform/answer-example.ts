import type { JsonSchema, SchemaComponents } from './json-schema';

/** Examples by name: of a field (`name`), a field of one schema (`WorkflowStep.name`), or a schema (`Metadata`). */
const values: Readonly<Record<string, string | number | boolean | null | Readonly<Record<string, string>>>> = {
  Metadata: { contract: 'C-1041' },
  Uuid: '01a208be-f0eb-7d31-82a5-1e3a0fff2b2c',
  id: '01a208be-f0eb-7d31-82a5-1e3a0fff2b2c',
  request_id: '5f0c1e8a-44b1-4c57-9d0e-2a7b9c1d3e5f',
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  name: 'Harbour Bakery',
  'WorkflowStep.name': 'fetch',
  'ServerAction.name': 'rebuild',
  title: 'New opening hours',
  body: 'They change on the first of May.',
  label: 'Orders',
  description: 'before the upgrade',
  detail: 'Choose another backup.',
  message: '',
  status_detail: '',
  error_code: '',
  last_error_code: '',
  suspension_reason: '',
  unsupported_reason: '',
  reason_code: '',
  reason: 'a socket is no file',
  code: 'expired',
  pointer: '/backup_id',
  value: 'drydock-site=01a208bef0eb7d3182a51e3a0fff2b2c',
  content: '01a208bef0eb7d3182a51e3a0fff2b2c',
  key: 'sites.view',
  meaning: 'See sites, their backups and their work.',
  prefix: 'dd_live_2VwX7ZkQmPa1',
  'OffsiteDestination.prefix': 'drydock',
  token: 'dd_live_2VwX7ZkQmPa1_kZ3…',
  password: 'shown once, here',
  action: 'site.backup.restore',
  target: '/v1/sites/01a208be-f0eb-7d31-82a5-1e3a0fff2b2c',
  deleted_by: '01a208be-eb2e-7dd5-94c9-de12100590e9',
  assignee_id: '',
  cover_colour: '',
  deploy_target: '',
  plan_code: 'cx22',
  provider: 'hetzner',
  spec: '2 vCPU, 4 GB',
  zone: 'fsn1',
  vendor_status: 'running',
  addresses: '203.0.113.7',
  allowed_ips: '203.0.113.0/24',
  optimisation: 'balanced',
  image: 'debian-12',
  capabilities: 'snapshot',
  login_user: 'root',
  cluster_id: '',
  blueprint: '',
  cluster_role: '',
  currency: 'EUR',
  subscription_id: '',
  order_line_id: '',
  event_types: 'workflow.*',
  secret: 'whsec_2VwX7ZkQmPa1…',
  secret_version: 1,
  'Webhook.url': 'https://hooks.example.com/drydock',
  'Webhook.description': 'Chat of the night shift',
  'WebhookWithSecret.url': 'https://hooks.example.com/drydock',
  'WebhookWithSecret.description': 'Chat of the night shift',
  last_status: 204,
  last_error: null,
  engine_version: '17',
  engine_label: 'PostgreSQL 17',
  version: '17',
  upgradable_to: '18',
  size: 'small',
  host: 'db.example.com',
  database_name: 'orders',
  username: 'orders_owner',
  primary_domain: 'harbour-bakery.example.com',
  domain: 'harbour-bakery.example.com',
  url: 'https://harbour-bakery.example.com',
  endpoint: 'https://s3.eu-central-1.example.com',
  region: 'eu-central-1',
  bucket: 'bakery-copies',
  key_id: 'k1',
  base_id: '01a208be-f17d-72a2-b57c-68a155b1df68',
  copy_id: '01a208be-f17d-72a2-b57c-68a155b1df68',
  depends_on: '01a208be-f17d-72a2-b57c-68a155b1df68',
  item_id: '',
  path: 'var/run/app.sock',
  timestamp: '1795442400',
  next_cursor: '',
  would: 'overwrite',
  resource: '/v1/sites/01a208be-f0eb-7d31-82a5-1e3a0fff2b2c',
  type: 'site',
  kind: 'restore_site_backup',
  checksum_sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  position: 0,
  term_months: 1,
  amount_minor: 499,
  started_hours: 12,
  port: 20017,
  vcpu: 2,
  ram_gb: 4,
  storage_gb: 40,
  size_gb: 3,
  size_bytes: 1_048_576,
  needed_bytes: 4_194_304,
  limit_bytes: 40_000_000_000,
  data_bytes: 12_400_000_000,
  used_bytes: 1_240_000_000,
  log_bytes: 52_000_000,
  free_bytes: 85_899_345_920,
  progress: 40,
  limit: 50,
  age_seconds: 3_600,
  used: 3,
  generation: 2,
  on_demand_limit: 10,
  on_demand_used: 1,
  on_demand_remaining: 9,
  retention_days: 30,
  backup_retention_days: 30,
  count: 0,
  attempts: 1,
  status: 422,
  created_at: '2026-11-23T14:11:02.503Z',
  scopes: 'sites.view',
};
/** The example of an enumeration is the first of its values that is in this set, and otherwise its first value. */
const usual: ReadonlySet<unknown> = new Set([
  'active',
  'available',
  'completed',
  'succeeded',
  'workflow.succeeded',
  'delivered',
  'on',
  'live',
  'local',
  'sites.view',
  'postgres',
  'proven',
  'automatic',
]);
/** Fields that are false in an example. All other boolean fields are true. */
const untrue: ReadonlySet<string> = new Set([
  'suspended',
  'held',
  'dead',
  'has_dead_web',
  'cancel_at_period_end',
  'has_more',
  'sandbox',
  'in_progress',
]);
/** Nullable fields that are null in an example, because most resources have no value there. */
const usuallyNull: ReadonlySet<string> = new Set([
  'error',
  'refusal',
  'revoked_at',
  'archived_at',
  'purged_at',
  'restored_at',
  'parent_id',
  'restore',
  'locked_until',
  'finished_at',
  'point',
  'disabled_reason',
  'failing_since',
  'next_attempt_at',
  'billing',
]);

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * An example of an answer, made from its schema. Throws if `values` has no value for a field with a free text or
 * number, so that no such field is forgotten.
 */
export function answerExample(schema: JsonSchema, components: SchemaComponents, owner = '', name = ''): unknown {
  const { $ref, const: fixed, enum: choices, anyOf, type, format, items, properties } = schema;
  if (typeof $ref === 'string') {
    const id = $ref.slice($ref.lastIndexOf('/') + 1);
    return id in values ? values[id] : answerExample(components.get(id) ?? {}, components, id, name);
  }
  if (fixed !== undefined) return fixed;
  if (Array.isArray(choices)) return choices.find((choice) => usual.has(choice)) ?? choices[0];
  if (Array.isArray(anyOf)) return exampleOfOne(anyOf.filter(isSchema), components, owner, name);
  if (isSchema(properties)) {
    return Object.fromEntries(
      Object.entries(properties).flatMap(([key, member]) =>
        isSchema(member) ? [[key, answerExample(member, components, owner, key)]] : [],
      ),
    );
  }
  if (type === 'array') return isSchema(items) ? [answerExample(items, components, owner, name)] : [];
  if (type === 'null') return null;
  if (type === 'boolean') return !untrue.has(name);
  if (format === 'uuid') return values['Uuid'];
  if (format === 'date-time') return '2026-11-23T14:11:02.503Z';
  if (format === 'date') return '2026-12-23';
  const value = values[`${owner}.${name}`] ?? values[name];
  if (value === undefined)
    throw new Error(
      `give ${name} an example in packages/contracts/src/platform/answer-example.ts: ` +
        `${owner} has ${JSON.stringify(schema)}`,
    );
  return value;
}

function exampleOfOne(
  options: readonly JsonSchema[],
  components: SchemaComponents,
  owner: string,
  name: string,
): unknown {
  const isNullable = options.some(({ type }) => type === 'null');
  const [first] = options.filter(({ type }) => type !== 'null');
  if (first === undefined || (isNullable && usuallyNull.has(name))) return null;
  return answerExample(first, components, owner, name);
}
