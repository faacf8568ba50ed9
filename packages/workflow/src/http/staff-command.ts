import { parseArgs } from 'node:util';
import { idSchema, type Mode } from '@drydock/contracts/platform/values';
import { subjectPaths } from '@drydock/contracts/platform/workflows';
import { type Database, openPool, pgDatabase, type Sql } from '@drydock/service/database';
import { audit } from '@drydock/service/effects';
import { runCommand } from '@drydock/service/process';
import { viewColumns, viewWorkflow, type WorkflowRow } from '../store/read-workflow';
import { abandonWorkflow, isUnfinished, retryWorkflow } from '../store/workflow-states';

const usage = `\
usage: command.js parked       lists the workflows that wait for staff, of all organisations, oldest first
       command.js retry ID     has one go on at the step where it stopped
       command.js abandon ID   ends one as failed; its resource is unlocked as it is`;

const listedMax = 200;

interface Parked extends WorkflowRow {
  org_id: string;
  mode: Mode;
  /** The cause of the failure, which customers are not shown. */
  error_internal: string | null;
}

/**
 * Runs the command by which staff handle the workflows that wait for them. The command works directly on the service's
 * database and covers all organisations, which no API key may do. `leaves` describes for each kind of workflow the
 * state in which an abandoned workflow leaves its resource.
 */
export function runStaffCommand(
  service: string,
  readCommandConfig: () => { DATABASE_URL: string },
  leaves: Readonly<Record<string, string>> = {},
): void {
  runCommand(async () => {
    const { positionals, values } = parseArgs({
      options: { help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (values.help) {
      console.log(usage);
      return 0;
    }
    const [verb, id, ...more] = positionals;
    const parsed = idSchema.safeParse(id);
    const decision = verb === 'retry' || verb === 'abandon' ? verb : undefined;
    const isUnderstood =
      decision === undefined ? verb === 'parked' && id === undefined : parsed.success && more.length === 0;
    if (!isUnderstood) {
      console.error(usage);
      return 2;
    }
    const { DATABASE_URL } = readCommandConfig();
    const pool = openPool(DATABASE_URL, { max: 1, applicationName: `${service}-command` });
    try {
      const database = pgDatabase(pool);
      if (decision === undefined) {
        const found = await listParked(database.sql());
        console.log(
          found.length === 0 ? 'nothing waits for staff' : found.slice(0, listedMax).map(describe).join('\n'),
        );
        if (found.length > listedMax)
          console.log(`More than these ${listedMax} wait. Decide about some, then list again.`);
      } else console.log(await decide(database, decision, { id: parsed.data ?? '', leaves }));
      return 0;
    } finally {
      await pool.end();
    }
  });
}

const parkedColumns = `${viewColumns}, org_id, mode, error_internal`;

const listParked = (sql: Sql): Promise<Parked[]> =>
  sql.query(
    `SELECT ${parkedColumns} FROM workflow WHERE ${isUnfinished} AND status = 'needs_attention' ORDER BY id
      LIMIT ${listedMax + 1}`,
  );

/**
 * Records the decision and makes the workflow due. A worker's next sweep finds the workflow, so the command needs no
 * queue.
 */
async function decide<Tx>(
  database: Database<Tx>,
  decision: 'retry' | 'abandon',
  { id, leaves }: { id: string; leaves: Readonly<Record<string, string>> },
): Promise<string> {
  return database.transaction(async (tx) => {
    const sql = database.sql(tx);
    const [found] = await sql.query<Parked>(`SELECT ${parkedColumns} FROM workflow WHERE id = $1::uuid`, [id]);
    if (found === undefined)
      throw new Error(`This service has no workflow ${id}. List each service's with: command.js parked`);
    if (decision === 'retry') await retryWorkflow(sql, id);
    else await abandonWorkflow(sql, id, leaves[found.kind]);
    const { org_id: orgId, mode } = found;
    await audit(sql, {
      orgId,
      mode,
      actorKeyId: null,
      action: `workflow.${decision}`,
      target: subjectOf(found),
      workflowId: id,
    });
    return `${decision}: a worker takes it up now`;
  });
}

const isSubject = (type: string): type is keyof typeof subjectPaths => Object.hasOwn(subjectPaths, type);

/** The path of the workflow's resource. A resource without a path, such as the platform, is shown as type and id. */
const subjectOf = ({ subject_type: type, subject_id: id }: WorkflowRow): string =>
  isSubject(type) ? subjectPaths[type] + id : `${type} ${id}`;

/**
 * Describes a workflow in lines of plain text. All lines but the first are indented, so that a provider's message
 * cannot be taken for another workflow.
 */
function describe(row: Parked): string {
  const { steps, error, findings } = viewWorkflow(row);
  const stopped = steps.find(({ status }) => status === 'failed') ?? steps.find(({ status }) => status === 'running');
  const lines = [
    `${row.id}  ${row.kind}  ${row.mode}  organisation ${row.org_id}`,
    `  ${subjectOf(row)}, at ${stopped?.name ?? 'its end'} since ` +
      `${stopped?.finished_at ?? row.created_at.toISOString()}`,
    `  ${error?.code ?? 'step_failed'}: ${error?.detail ?? ''}`,
    ...(row.error_internal === null ? [] : [`  cause: ${row.error_internal}`]),
    ...findings.map(({ code, detail }) => `  ${code}: ${detail}`),
  ];
  return lines.map((line) => line.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')).join('\n');
}
