import type { EventType } from '@drydock/contracts/keys/events';
import { subjectPaths } from '@drydock/contracts/platform/workflows';
import { uuidv7Sql } from '@drydock/service/database';

const subjectPathSql = Object.entries(subjectPaths)
  .map(([type, path]) => `WHEN '${type}' THEN '${path}'`)
  .join(' ');

/** The columns of a workflow that {@link telling} needs. */
export const toldColumns =
  'workflow.id, kind, workflow.org_id, workflow.mode, subject_type, subject_id, actor_key_id, request_id, error';

/**
 * SQL that writes the event of a state in the same statement as the state, so that a state is never written without its
 * event. `reached` has rows with {@link toldColumns}. The platform's own workflows have no events.
 */
export const telling = (type: EventType, reached: string): string => `told AS (
    INSERT INTO workflow_event (id, type, org_id, mode, resource, actor_key_id,
      workflow_id, kind, request_id, error, at)
    SELECT ${uuidv7Sql}, '${type}', org_id, mode, CASE subject_type ${subjectPathSql} END || subject_id, actor_key_id,
      id, kind, request_id, error, clock_timestamp()
    FROM ${reached} WHERE subject_type IN (${Object.keys(subjectPaths)
      .map((type) => `'${type}'`)
      .join(', ')})
  )`;
