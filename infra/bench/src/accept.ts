import { randomUUID } from 'node:crypto';
import type { TestStack } from '@drydock/testing/stack';
import { Pool } from 'pg';
import { request } from 'undici';
import { uuidv7 } from 'uuidv7';
import { median } from './measure';
import { printRows } from './report';
import { environmentOf, startBenchStack } from './stack';

const samples = 400;
/** The number of samples at the start that are not counted, because V8 has not yet compiled the code that they run. */
const warmUps = 150;

/**
 * The statements of the bare transaction. They write the rows that the service writes for an accepted restore.
 * The workflow and its steps are copied from a restore that the service has accepted.
 */
const bareStatements = [
  'SELECT id FROM sites WHERE id = $1::uuid FOR UPDATE',
  `INSERT INTO workflow SELECT (jsonb_populate_record(w, jsonb_build_object('id', $2::text, 'resource_key', $2::text, 'subject_id', $1::text))).*
   FROM workflow w WHERE w.id = $3::uuid`,
  `INSERT INTO workflow_step SELECT (jsonb_populate_record(s, jsonb_build_object('workflow_id', $2::text))).* FROM workflow_step s WHERE s.workflow_id = $3::uuid`,
  `INSERT INTO workflow_event (id, type, org_id, mode, resource, actor_key_id, workflow_id, kind, request_id, at)
   SELECT $5::uuid, 'workflow.accepted', org_id, mode, '/v1/sites/' || $1::text, actor_key_id, id, kind, request_id,
     clock_timestamp() FROM workflow WHERE id = $2::uuid`,
  "UPDATE sites SET status = 'restoring' WHERE id = $1::uuid",
  `INSERT INTO audit_outbox (id, org_id, mode, action, target, workflow_id) SELECT $4::uuid, org_id, mode::text, 'backup.restore', 'bench', $2::uuid FROM sites WHERE id = $1::uuid`,
];
/**
 * For each statement, the indices of the values that it uses: 0 is the site, 1 the new workflow, 2 the workflow to
 * copy, 3 the new audit entry, and 4 the new event.
 */
const parametersOf: ReadonlyArray<readonly number[]> = [[0], [0, 1, 2], [1, 2], [0, 1, 4], [0], [0, 1, 3]];

/** Renumbers the parameters of a statement from $1, because Postgres refuses values that the statement does not use. */
const renumber = (statement: string, used: readonly number[]): string =>
  statement.replace(/\$(\d)/g, (_, digit: string) => `$${used.indexOf(Number(digit) - 1) + 1}`);

export interface SiteCopy {
  siteId: string;
  backupId: string;
}

/**
 * Copies a site of the demo and one of its backups `count` times, in the database of hosting only. Each restore needs a
 * site of its own, because a site accepts one restore at a time.
 */
export async function copySites(stack: TestStack, pool: Pool, count: number): Promise<SiteCopy[]> {
  const [{ id: siteId } = { id: '' }] = stack.demo.sites;
  const found = await pool.query<{ id: string }>(
    "SELECT id FROM backups WHERE status = 'completed' AND site_id = $1::uuid LIMIT 1",
    [siteId],
  );
  const backupId = found.rows[0]?.id;
  if (backupId === undefined) throw new Error('the demo has no backup');
  const made = Array.from({ length: count }, () => ({ siteId: uuidv7(), backupId: uuidv7() }));
  for (const copy of made) {
    await pool.query(
      `INSERT INTO sites SELECT (jsonb_populate_record(s, jsonb_build_object('id', $1::text, 'primary_domain', $1::text || '.example'))).* FROM sites s WHERE id = $2::uuid`,
      [copy.siteId, siteId],
    );
    await pool.query(
      `INSERT INTO backups SELECT (jsonb_populate_record(b, jsonb_build_object('id', $1::text, 'site_id', $2::text))).* FROM backups b WHERE id = $3::uuid`,
      [copy.backupId, copy.siteId, backupId],
    );
  }
  return made;
}

/** Requests a restore. Resolves with the milliseconds until the gateway answers 202. */
export async function acceptRestore({ demo }: TestStack, { siteId, backupId }: SiteCopy): Promise<number> {
  const startedMs = performance.now();
  const answer = await request(`${demo.base_url}/v1/sites/${siteId}/backups/restore`, {
    method: 'POST',
    headers: { authorization: `Bearer ${demo.live_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ backup_id: backupId }),
  });
  await answer.body.dump();
  if (answer.statusCode !== 202) throw new Error(`a restore was answered ${answer.statusCode}`);
  return performance.now() - startedMs;
}

/**
 * Compares the time until a restore is accepted with the time of a bare transaction with the same inserts in the same
 * database. Hosting's worker is frozen, so that it uses no processor time.
 */
export async function benchAccept(): Promise<void> {
  const stack = await startBenchStack();
  const pool = new Pool({ connectionString: environmentOf(stack.processes(), 'hosting', 'DATABASE_URL'), max: 1 });
  try {
    stack.kill('hosting-worker', 'SIGSTOP');
    const copies = await copySites(stack, pool, samples);
    const accepted: number[] = [];
    for (const copy of copies) accepted.push(await acceptRestore(stack, copy));
    const bare = await bareTransactions(pool, copies);
    const [ours, peer] = [median(accepted.slice(warmUps)), median(bare.slice(warmUps))];
    const row = {
      what: 'accepting a restore (202) through the gateway, p50 (at most twice)',
      ours: `${ours.toFixed(2)} ms (${(ours / peer).toFixed(1)} times)`,
      peer: 'bare transaction with the same inserts',
      peerValue: `${peer.toFixed(2)} ms`,
      ratio: (peer * 2) / ours,
      bar: 1,
    };
    printRows(
      'Accepting',
      [row],
      `${samples - warmUps} samples after ${warmUps} of warming up, one at a time. The ratio is the allowed multiple over the measured one.`,
    );
  } finally {
    await pool.end();
    stack.kill('hosting-worker', 'SIGKILL');
    await stack.stop();
  }
}

async function bareTransactions(pool: Pool, copies: ReadonlyArray<{ siteId: string }>): Promise<number[]> {
  const client = await pool.connect();
  const [model] = (
    await client.query<{ id: string }>(
      "SELECT id FROM workflow WHERE kind = 'restore_backup' ORDER BY created_at DESC LIMIT 1",
    )
  ).rows;
  const taken: number[] = [];
  for (const { siteId } of copies) {
    const all = [siteId, randomUUID(), model?.id ?? '', randomUUID(), randomUUID()];
    const startedMs = performance.now();
    await client.query('BEGIN');
    for (const [at, statement] of bareStatements.entries()) {
      const used = parametersOf[at] ?? [];
      await client.query(
        renumber(statement, used),
        used.map((number) => all[number]),
      );
    }
    await client.query('COMMIT');
    taken.push(performance.now() - startedMs);
  }
  client.release();
  return taken;
}
