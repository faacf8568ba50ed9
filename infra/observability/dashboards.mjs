// Writes the dashboards of Grafana: `node infra/observability/dashboards.mjs [folder]`. A test compares the files with
// what this program makes.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

/** Panels as [title, unit, expression, legend]. Three fit in a row. */
const dashboards = {
  overview: {
    title: 'Drydock: overview',
    panels: [
      [
        'Requests',
        'reqps',
        'sum by (http_response_status_code) (rate(http_server_request_duration_count{process="gateway"}[5m]))',
        '{{http_response_status_code}}',
      ],
      ['Failed by our fault', 'percentunit', 'gateway:errors:ratio_rate5m{}', 'share of requests'],
      [
        'Duration of requests',
        's',
        'histogram_quantile(0.99, sum by (le) (rate(http_server_request_duration_bucket{process="gateway"}[5m])))',
        'p99',
      ],
      [
        'Unfinished work',
        'short',
        'sum by (kind, status) (workflow_unfinished{process!=""}) > 0',
        '{{kind}} {{status}}',
      ],
      ['Waiting for staff', 'short', 'sum by (kind) (workflow_needs_attention{process!=""})', '{{kind}}'],
      ['Oldest work not taken up', 's', 'max by (kind) (workflow_oldest_due{process!=""})', '{{kind}}'],
      ['Processes that answer', 'short', 'sum by (process) (up{process!=""})', '{{process}}'],
      ['Alarms', 'short', 'count by (alertname) (ALERTS{alertstate="firing"})', '{{alertname}}'],
      [
        'Oldest audit entry not delivered',
        's',
        'max by (process) (audit_oldest_undelivered{process!=""})',
        '{{process}}',
      ],
      // Each worker of a service reports the counts of all its sites or databases. A sum would add the same counts.
      ['Sites that are filling', 'short', 'max by (state) (site_storage{state!="ok"})', '{{state}}'],
      ['Databases that are filling', 'short', 'max by (state) (database_storage{state!="ok"})', '{{state}}'],
    ],
  },
  api: {
    title: 'Drydock: API',
    panels: [
      [
        'Requests by route',
        'reqps',
        'topk(15, sum by (http_request_method, http_route) (rate(http_server_request_duration_count{process="$process"}[5m])))',
        '{{http_request_method}} {{http_route}}',
      ],
      [
        'Slowest routes, p99',
        's',
        'topk(15, histogram_quantile(0.99, sum by (le, http_request_method, http_route) (rate(http_server_request_duration_bucket{process="$process"}[5m]))))',
        '{{http_request_method}} {{http_route}}',
      ],
      [
        'Answers 5xx by route',
        'reqps',
        'sum by (http_request_method, http_route) (rate(http_server_request_duration_count{process="$process", http_response_status_code=~"5.."}[5m]))',
        '{{http_request_method}} {{http_route}}',
      ],
      [
        'Statements',
        'ops',
        'sum by (db_operation_name) (rate(db_client_operation_duration_count{process="$process"}[5m]))',
        '{{db_operation_name}}',
      ],
      [
        'Duration of statements, p99',
        's',
        'histogram_quantile(0.99, sum by (le, db_operation_name) (rate(db_client_operation_duration_bucket{process="$process"}[5m])))',
        '{{db_operation_name}}',
      ],
      [
        'Connections to Postgres',
        'short',
        'sum by (db_client_connection_pool_name, db_client_connection_state) (db_client_connection_count{process="$process"})',
        '{{db_client_connection_pool_name}} {{db_client_connection_state}}',
      ],
      [
        'Event loop, p99 (50 ms when idle)',
        's',
        'max by (instance) (nodejs_eventloop_delay_p99{process="$process"})',
        '{{instance}}',
      ],
      ['Heap', 'bytes', 'sum by (instance) (v8js_memory_heap_used{process="$process"})', '{{instance}}'],
      [
        'Calls to others, p99',
        's',
        'histogram_quantile(0.99, sum by (le, http_request_method) (rate(http_client_request_duration_bucket{process="$process"}[5m])))',
        '{{http_request_method}}',
      ],
    ],
    variable: 'label_values(up, process)',
  },
  workflows: {
    title: 'Drydock: workflows',
    panels: [
      ['Accepted', 'ops', 'sum by (kind) (rate(workflow_started_total{process!=""}[5m]))', '{{kind}}'],
      ['Ended', 'ops', 'sum by (kind, status) (rate(workflow_finished_total{process!=""}[5m]))', '{{kind}} {{status}}'],
      [
        'Duration, p95',
        's',
        'histogram_quantile(0.95, sum by (le, kind) (rate(workflow_duration_bucket{process!=""}[30m])))',
        '{{kind}}',
      ],
      [
        'From due to claimed, p95',
        's',
        'histogram_quantile(0.95, sum by (le, kind) (rate(workflow_queue_delay_bucket{process!=""}[5m])))',
        '{{kind}}',
      ],
      [
        'Slowest steps, p95',
        's',
        'topk(15, histogram_quantile(0.95, sum by (le, kind, step) (rate(workflow_step_duration_bucket{process!=""}[30m]))))',
        '{{kind}}.{{step}}',
      ],
      [
        'Attempts that were not done',
        'ops',
        'sum by (kind, step, outcome) (rate(workflow_step_duration_count{outcome!="done"}[5m]))',
        '{{kind}}.{{step}} {{outcome}}',
      ],
      ['Parked for staff', 'short', 'sum by (kind) (increase(workflow_parked_total{process!=""}[1h]))', '{{kind}}'],
      ['Leases lost', 'short', 'sum by (kind) (increase(workflow_leases_lost_total{process!=""}[1h]))', '{{kind}}'],
      [
        'Fences refused',
        'short',
        'sum by (kind) (increase(workflow_refused_fences_total{process!=""}[1h]))',
        '{{kind}}',
      ],
    ],
  },
};

const datasource = { type: 'prometheus', uid: '$datasource' };

const panelOf = ([title, unit, expr, legendFormat], index) => ({
  id: index + 1,
  type: 'timeseries',
  title,
  datasource,
  gridPos: { x: (index % 3) * 8, y: Math.floor(index / 3) * 8, w: 8, h: 8 },
  fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  targets: [{ refId: 'A', datasource, expr, legendFormat }],
});

const variablesOf = (query) => [
  { name: 'datasource', type: 'datasource', query: 'prometheus' },
  ...(query === undefined
    ? []
    : [
        {
          name: 'process',
          type: 'query',
          datasource,
          query,
          refresh: 2,
          current: { text: 'gateway', value: 'gateway' },
        },
      ]),
];

const usage = 'usage: node infra/observability/dashboards.mjs [FOLDER]';
const [target] = readArguments();
function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      options: { help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (positionals.length > 1) throw new Error(`Unexpected argument '${positionals[1]}'`);
    if (!values.help) return positionals;
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
  console.log(usage);
  process.exit(0);
}
const folder = target ?? path.join(import.meta.dirname, 'grafana');
for (const [name, { title, panels, variable }] of Object.entries(dashboards)) {
  const dashboard = {
    uid: `drydock-${name}`,
    title,
    schemaVersion: 39,
    time: { from: 'now-6h', to: 'now' },
    refresh: '30s',
    templating: { list: variablesOf(variable) },
    panels: panels.map(panelOf),
  };
  writeFileSync(path.join(folder, `${name}.json`), `${JSON.stringify(dashboard, null, 2)}\n`);
}
