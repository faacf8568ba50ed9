import { describeStatement, isRefresh } from '../../load/statement.rules';
import { isPermanentForReader, isPermanentSqlState, sqlStateOf, TransferError } from '../../session/transfer-error';
import { makeEmptyTarget } from '../copy/copy-schema';
import { syncRoles } from '../copy/roles';
import { planSchema } from '../copy/schema-statements';
import { type FailedStatement, type Part, runPart, storePlan } from '../plan-store';
import { type Move, UpgradeError, withStage } from '../session';
import { type Finding, remedyFor } from './prechecks.rules';

/** The parts in two groups. Memberships between roles are restored after the first group, as in `copySchema`. */
const parts: readonly (readonly Part[])[] = [
  ['schemas', 'extensions', 'pre', 'dropChecks', 'attach', 'keys'],
  ['indexes', 'rest', 'late'],
];
/** The list is limited, because a missing table makes all statements about it fail. */
const findingsMax = 20;

/**
 * Creates the old database's schema on a temporary server of the new major. Each statement that fails permanently
 * becomes a finding, and the other statements still run. The old database is only read.
 */
export async function trySchema(move: Move): Promise<Finding[]> {
  const failed: FailedStatement[] = [];
  await withStage(move, async (stage) => {
    await makeEmptyTarget(stage);
    await storePlan(stage, await planSchema(stage));
    for (const some of parts) {
      for (const part of some) await runPart(stage, part, { onFailure: (failure) => failed.push(failure) });
      await syncRoles(await stage.server('old'), await stage.server('target'), move.databaseName);
    }
  });
  return failed.slice(0, findingsMax).map(findingOf);
}

/**
 * Returns a finding for a failed statement. A view that cannot be filled is only a warning, because it is moved without
 * its content.
 */
function findingOf({ sql, error }: FailedStatement): Finding {
  if (!isRefresh({ outline: sql })) return { level: 'ERROR', code: 'statement_refused', detail: sentenceOf(error) };
  const left = 'It goes over without its contents. Mend what it needs, then run';
  return {
    level: 'WARNING',
    code: 'not_populated',
    detail: `${describeStatement(sql)} cannot be computed in the new version: ${error.reason}. ${left}: ${sql};`,
  };
}

const sentenceOf = ({ object, reason }: FailedStatement['error']): string =>
  `${object ?? 'A statement'} cannot be made in the new version: ${reason}. ${remedyFor(reason)}`;

/**
 * SQLSTATEs of a reader that lost a race: a lock or a statement that took too long, a deadlock, and an object that was
 * dropped while it was read.
 */
const raceCodes: ReadonlySet<unknown> = new Set(['55P03', '57014', '40P01', 'XX000']);

/**
 * Returns a finding for the error of a check that could not read the customer's schema: something in it cannot be read,
 * or the schema changed or was locked during the check. Throws every other error, such as a lost connection.
 */
export function unreadFinding(error: unknown): Finding {
  const known = error instanceof TransferError || error instanceof UpgradeError ? error : null;
  const state = sqlStateOf(known === null ? error : known.cause);
  const isPermanent = known?.isPermanent ?? isPermanentForReader(state);
  if (!isPermanent && !isPermanentSqlState(state) && !raceCodes.has(state)) throw error;
  const said = known?.reason ?? (error instanceof Error ? error.message : String(error));
  const reason = known?.object == null ? said : `${known.object}: ${said}`;
  const detail = isPermanent
    ? `The schema cannot be read: ${reason}. Change or drop what it names, and ask again.`
    : `The schema changed or was locked while it was read: ${reason}. Ask again while no schema changes run.`;
  return { level: 'ERROR', code: 'schema_not_read', detail };
}
