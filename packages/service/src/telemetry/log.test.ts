import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { context, trace } from '@opentelemetry/api';
import { startTestDatabase } from '../../test/postgres';
import { createLog } from './log';
import { withLogContext } from './log-context';

test('secrets are struck out wherever they stand, and each line carries the ids of its work', () => {
  const lines: string[] = [];
  const log = createLog({ service: 'keys', destination: { write: (line) => void lines.push(line) } });
  withLogContext({ request_id: 'r-1', workflow_id: 'w-1', org_id: 'o-1' }, () =>
    log.info(
      {
        token: 'hunter2',
        headers: { authorization: 'hunter2', 'idempotency-key': 'hunter2' },
        a: { b: { password: 'hunter2' } },
      },
      'x',
    ),
  );
  log.info('outside');
  log.child({ secret: 'hunter2' }).info({ jobs: [{ token: 'hunter2' }] }, 'of a child');
  const request = new (class {
    password = 'hunter2';
  })();
  const refused = Object.assign(new Error('refused'), { request, config: { token: 'hunter2' } });
  log.error({ err: refused }, 'of an error');
  log.error({ cause: refused, tries: [{ cause: refused }] }, 'of errors under other names');
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

test('a line within a span has the ids of the span beside the fields of its request', async () => {
  const lines: string[] = [];
  const log = createLog({ service: 'keys', destination: { write: (line) => void lines.push(line) } });
  const ids = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
  await withLogContext({ request_id: 'r-1', trace_id: 'of the request' }, () =>
    context.with(trace.setSpanContext(context.active(), ids), async () => {
      await Promise.resolve();
      log.info('within');
      withLogContext({ workflow_id: 'w-1' }, () => log.info('deeper'));
    }),
  );
  const [within, deeper] = lines.map((line) => JSON.parse(line) as unknown);
  expect(within).toMatchObject({ request_id: 'r-1', trace_id: ids.traceId, span_id: ids.spanId });
  expect(deeper).toMatchObject({ workflow_id: 'w-1', trace_id: ids.traceId, span_id: ids.spanId });
});

test('a secret in the middle of a text or of an error is struck out by its form, and the line stays JSON', () => {
  const lines: string[] = [];
  const log = createLog({ service: 'keys', destination: { write: (line) => void lines.push(line) } });
  log.error(
    { err: new Error('connect to postgresql://a:hunter2@h/d with password "hunter2"') },
    `alter role "a" password 'hunter2'`,
  );
  log.info({ url: 'postgresql://a:hunter2@h/d', body: JSON.stringify({ password: 'hunter2' }) }, 'x');
  expect(lines.join('')).not.toContain('hunter2');
  expect(lines.map((line) => JSON.parse(line).level)).toEqual(['error', 'info']);
});

test('what Postgres quotes from a row that it refuses is in no line, however deep the error stands in another one', async () => {
  const { pool, close } = await startTestDatabase(
    'CREATE TABLE note (id int PRIMARY KEY, text text CHECK (length(text) < 5))',
  );
  const refused: unknown = await pool
    .query("INSERT INTO note VALUES (1, 'a customer’s own words')")
    .catch((error: unknown) => error);
  await close();
  const lines: string[] = [];
  const log = createLog({ service: 'keys', destination: { write: (line) => void lines.push(line) } });
  const adapters = Object.assign(new Error('from the adapter'), { cause: { ...Object(refused), severity: 'ERROR' } });
  log.error({ err: refused }, 'bare');
  log.error(
    { err: Object.assign(new Error('of Prisma'), { code: 'P2039', meta: { driverAdapterError: adapters } }) },
    'wrapped',
  );
  log.error(
    { err: Object.assign(new Error('ours'), { details: { detail: 'what the caller was told' } }) },
    'a problem',
  );
  expect(lines.join('')).not.toContain('own words');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    err: { code: '23514', constraint: 'note_text_check', stack: expect.any(String) },
  });
  expect(JSON.parse(lines[1] ?? '')).toMatchObject({
    err: { meta: { driverAdapterError: { cause: { code: '23514' } } } },
  });
  expect(JSON.parse(lines[2] ?? '')).toMatchObject({ err: { details: { detail: 'what the caller was told' } } });
});

/**
 * A program that logs 40,000 lines of 1,000 characters and then reports on stderr that it is done. On request it logs
 * one more line.
 */
const chatterbox = `
  const { createLog } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/telemetry/log.js'))});
  const log = createLog({ service: 'keys' });
  for (let n = 0; n < 40_000; n += 1) log.info({ n, text: 'x'.repeat(900) }, 'said');
  process.stderr.write('done');
  process.stdin.once('data', () => { log.info('at last'); process.stdin.destroy(); });
`;

test('a process whose log nobody reads goes on, and says how many lines it has dropped once somebody does', async () => {
  const child = spawn(process.execPath, ['-e', chatterbox]);
  await once(child.stderr, 'data');
  const lines: { n?: number; msg: string; dropped?: number }[] = [];
  let rest = '';
  const ended = once(child.stdout, 'end');
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) lines.push(JSON.parse(part));
    if (lines.length > 1_000 && child.stdin.writable) child.stdin.end('go on');
  });
  await ended;
  const said = lines.filter(({ msg }) => msg === 'said').length;
  expect(said).toBeLessThan(40_000);
  expect(lines.find(({ dropped }) => dropped !== undefined)?.dropped).toBe(40_000 - said);
  expect(lines.at(-1)?.msg).toBe('at last');
});
