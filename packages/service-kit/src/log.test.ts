import { createLog } from './log';
import { withLogContext } from './log-context';

test('secrets are struck out wherever they stand, and each line carries the ids of its work', () => {
  const lines: string[] = [];
  const log = createLog({ service: 'keys', destination: { write: (line) => void lines.push(line) } });
  withLogContext({ request_id: 'r-1', workflow_id: 'w-1', org_id: 'o-1' }, () =>
    log.info(
      { token: 'hunter2', headers: { authorization: 'hunter2', 'idempotency-key': 'hunter2' }, a: { b: { password: 'hunter2' } } },
      'x',
    ),
  );
  log.info('outside');
  expect(lines.join('')).not.toContain('hunter2');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    service: 'keys',
    level: 'info',
    request_id: 'r-1',
    workflow_id: 'w-1',
    org_id: 'o-1',
  });
  expect(JSON.parse(lines[1] ?? '')).not.toHaveProperty('request_id');
});
