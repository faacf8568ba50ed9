import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { startChildService } from '../../test/child-service';
import { tokenSecret } from '../../test/fixture';
import { startTestDatabase, type TestDatabase } from '../../test/postgres';
import { describeConfig, queueFields, readConfig, secretField, serviceFields } from './config';
import { deriveKey } from './secrets';

const shape = { ...serviceFields('hosting'), EXTRA: z.string().optional().meta({ description: 'Something' }) };
const environment = {
  DATABASE_URL: 'postgresql://u:p@127.0.0.1/db',
  SERVICE_SECRET: 'ab'.repeat(32),
  INTERNAL_TOKEN_SECRET: 'cd'.repeat(32),
  AUDIT_TOKEN_SECRET: 'ef'.repeat(32),
  KEYS_URL: 'http://127.0.0.1:1',
};

test('variables that are not set get their defaults, and variables outside the shape are ignored', () => {
  expect(readConfig(shape, { ...environment, PORT: '8081', LOG_LEVEL: '', OTHER: 'x' })).toEqual({
    ...environment,
    SERVICE_NAME: 'hosting',
    HOST: '127.0.0.1',
    PORT: 8081,
    LOG_LEVEL: 'info',
    DRYDOCK_TIMEOUT_SCALE: 1,
    TRACE_READS: 0.05,
    TRACE_SLOW_MS: 1_000,
    TRACE_DETAIL: 'default',
  });
});

test('every missing or wrong variable is named with its purpose, without its value', () => {
  const read = () =>
    readConfig(shape, { ...environment, KEYS_URL: undefined, SERVICE_SECRET: 'hunter2', PORT: '99999' });
  expect(read).toThrow(/KEYS_URL is not set: Where keys listens/);
  expect(read).toThrow(/SERVICE_SECRET is not valid \(must be at least 32 bytes of hex/);
  expect(read).toThrow(/PORT is not valid/);
  expect(read).not.toThrow(/hunter2/);
});

test('a lease or a sweep interval that could outlast the freeze of a switched site is refused with the reason', () => {
  const queue = { QUEUE_URL: 'redis://127.0.0.1:1' };
  const read = (more: Record<string, string>) => () => readConfig(queueFields, { ...queue, ...more });
  expect(read({ WORKFLOW_LEASE_SECONDS: '30', WORKFLOW_SWEEP_MS: '5000' })).not.toThrow();
  expect(read({ WORKFLOW_LEASE_SECONDS: '60' })).toThrow(/WORKFLOW_LEASE_SECONDS .*at most 30: .*freezes its site/);
  expect(read({ WORKFLOW_SWEEP_MS: '60000' })).toThrow(/WORKFLOW_SWEEP_MS .*at most 5000: .*freezes its site/);
});

test('a description has the default of a variable and whether it is required, but never a secret', () => {
  const described = describeConfig({ ...shape, PEPPER: secretField('x').default('ab'.repeat(32)) });
  const named = (name: string) => described.find((variable) => variable.name === name);
  expect(named('KEYS_URL')).toMatchObject({ required: true, default: undefined, secret: false });
  expect(named('PORT')).toMatchObject({ required: false, default: '0' });
  expect(named('SERVICE_SECRET')).toMatchObject({ required: true, secret: true });
  expect(named('PEPPER')).toMatchObject({ required: false, default: undefined });
  expect(described.every(({ description }) => description !== '')).toBe(true);
});

test('derived keys differ by label, and a short secret is refused', () => {
  expect(deriveKey(environment.SERVICE_SECRET, 'a')).toEqual(deriveKey(environment.SERVICE_SECRET, 'a'));
  expect(deriveKey(environment.SERVICE_SECRET, 'a').equals(deriveKey(environment.SERVICE_SECRET, 'b'))).toBe(false);
  expect(() => deriveKey('abcd', 'a')).toThrow(/32 bytes/);
});

describe('a secret in a file', () => {
  const { SERVICE_SECRET, ...others } = environment;
  let db: TestDatabase;
  let folder: string;
  beforeAll(async () => {
    db = await startTestDatabase('CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL)');
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-secrets-'));
  });
  afterAll(async () => {
    fs.rmSync(folder, { recursive: true, force: true });
    await db.close();
  });
  const write = (name: string, content: string): string => {
    fs.writeFileSync(path.join(folder, name), content);
    return path.join(folder, name);
  };

  test('is read from the file that NAME_FILE names, without the line break at its end', () => {
    const file = write('good', `${SERVICE_SECRET}\n`);
    expect(readConfig(shape, { ...others, SERVICE_SECRET_FILE: file })).toMatchObject({ SERVICE_SECRET });
  });

  test('is refused if the variable is set too or the file cannot be read; an empty file counts as not set', () => {
    const read = (given: Record<string, string>) => () => readConfig(shape, { ...others, ...given });
    expect(read({ SERVICE_SECRET, SERVICE_SECRET_FILE: write('both', SERVICE_SECRET) })).toThrow(
      'SERVICE_SECRET_FILE are both set',
    );
    expect(read({ SERVICE_SECRET_FILE: path.join(folder, 'none') })).toThrow(
      'SERVICE_SECRET_FILE names a file that cannot be read',
    );
    expect(read({ SERVICE_SECRET_FILE: write('empty', '\n') })).toThrow('SERVICE_SECRET is not set');
    expect(read({ SERVICE_SECRET, EXTRA_FILE: write('optional', '') })().EXTRA).toBeUndefined();
  });

  test('need not be in the environment of a running process', async () => {
    const files = {
      INTERNAL_TOKEN_SECRET: '',
      INTERNAL_TOKEN_SECRET_FILE: write('token', `${tokenSecret}\n`),
      DATABASE_URL_FILE: write('database', db.url),
    };
    const service = await startChildService(files);
    expect((await service.post('by-files')).status).toBe(201);
    const readable = fs.readFileSync(`/proc/${service.child.pid}/environ`, 'utf8');
    expect(readable).toContain('DATABASE_URL_FILE=');
    for (const secret of [tokenSecret, db.url]) expect(readable).not.toContain(secret);
    service.child.kill('SIGTERM');
    expect(await service.gone).toBe(0);
  });

  test('is redacted like a secret in the environment', async () => {
    const script = `console.log(require('./dist/telemetry/redact.js').redact('it is ${tokenSecret}.'))`;
    const env = { SERVICE_SECRET_FILE: write('logged', tokenSecret), OTHER_SECRET_FILE: path.join(folder, 'none') };
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], {
      env,
      cwd: path.join(__dirname, '../..'),
    });
    expect(stdout).toBe('it is [redacted].\n');
  });
});
