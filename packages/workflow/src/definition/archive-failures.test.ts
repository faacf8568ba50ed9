import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { ArchiveError, type ArchiveReason, archiveReasons, pack, streamRoot, verifyArchive } from '@drydock/archive';
import { problems } from '@drydock/contracts/platform/problems';
import {
  type ArchiveKind,
  archiveErrorIn,
  archiveErrorOfJob,
  archiveFailure,
  archiveFailures,
} from './archive-failures';

const key = Buffer.alloc(32, 7);
const expected = { archiveId: randomUUID(), siteId: randomUUID(), orgId: randomUUID() };

/**
 * Packs a small valid archive in memory. The function that it resolves with changes a copy of the archive, verifies the
 * copy, and resolves with the error of the verification.
 */
async function archiveOf(): Promise<
  (change: (objects: Map<string, Buffer>) => unknown, entriesMax?: number) => Promise<unknown>
> {
  const packed = new Map<string, Buffer>();
  const entries = async function* () {
    for (const path of ['a', 'b']) yield { path, content: Readable.from([Buffer.from(path)]) };
  };
  const sink = { write: async (name: string, bytes: Buffer) => void packed.set(name, Buffer.from(bytes)) };
  const identity = { ...expected, sequence: 1 };
  const { manifestMac } = await pack({
    roots: [streamRoot('rows', entries())],
    sink,
    key,
    identity,
    createdAt: new Date(),
  });
  return (change, entriesMax) => {
    const objects = new Map([...packed].map(([name, bytes]) => [name, Buffer.from(bytes)]));
    change(objects);
    const read = async (name: string): Promise<Buffer> => {
      const bytes = objects.get(name);
      if (bytes === undefined) throw new ArchiveError('missing', `object ${name} is missing`);
      return bytes;
    };
    const limits = entriesMax === undefined ? {} : { limits: { entriesMax } };
    return verifyArchive({ read }, key, { ...expected, manifestMac }, limits).catch((error: unknown) => error);
  };
}

const failureOf = (error: unknown, kind: ArchiveKind) => {
  const refused = archiveErrorIn(error);
  const failure = refused === null ? undefined : archiveFailure(refused.reason, kind, error);
  if (failure === undefined) throw new Error('not refused', { cause: error });
  return { code: failure.problem.code, detail: failure.problem.detail, alarm: failure.alarm };
};

describe('an archive that is refused says what is wrong with it', () => {
  interface Case {
    what: string;
    change: (objects: Map<string, Buffer>) => unknown;
    code: string;
    detail?: string;
    entriesMax?: number;
  }
  const cases: Case[] = [
    {
      what: 'has another byte',
      change: (objects) => objects.get('segment-00000000')?.fill(0, 80, 81),
      code: 'tampered',
    },
    { what: 'is cut short', change: (objects) => objects.set('segment-00000000', Buffer.alloc(0)), code: 'tampered' },
    { what: 'has lost an object', change: (objects) => objects.delete('segment-00000000'), code: 'missing' },
    { what: 'has lost all', change: (objects) => objects.clear(), code: 'missing' },
    {
      what: 'was written in a newer format',
      change: (objects) => objects.get('manifest')?.write('drydock-archive/2'),
      code: 'format_newer',
      detail: 'drydock-archive/2',
    },
    {
      what: 'holds more than the reader takes',
      change: () => null,
      code: 'too_large',
      detail: '2 entries declared',
      entriesMax: 1,
    },
  ];
  it.each(cases)('when it $what', async ({ change, code, detail, entriesMax }) => {
    const error = await (await archiveOf())(change, entriesMax);
    const told = detail === undefined ? undefined : expect.stringContaining(detail);
    expect(failureOf(error, 'site_backup')).toEqual({ code: `backup_${code}`, detail: told, alarm: 'archive_refused' });
    expect(failureOf(error, 'database_backup')).toEqual({
      code: `backup_${code}`,
      detail: told,
      alarm: 'archive_refused',
    });
    expect(failureOf(error, 'site_copy')).toEqual({ code: `copy_${code}`, detail: told, alarm: undefined });
  });

  it('also when a job of an agent has found it, and when another error wraps it', () => {
    const problem = Object.assign(new Error('limit_exceeded: 3 entries declared'), { code: 'archive.limit_exceeded' });
    const wrapped = new Error('archive_refused', { cause: archiveErrorOfJob(problem) });
    expect(failureOf(wrapped, 'site_backup')).toMatchObject({ code: 'backup_too_large', detail: '3 entries declared' });
    expect(archiveErrorOfJob(Object.assign(new Error('x'), { code: 'archive.toString' }))).toBeNull();
  });
});

it('each code of the table tells the customer whether staff know, and a transient reason is no failure', () => {
  const reasons = Object.keys(archiveReasons) as ArchiveReason[];
  expect(reasons.filter((reason) => archiveFailure(reason, 'site_backup', new Error('x')) === undefined)).toEqual([
    'source_unreadable',
    'staging_not_empty',
    'write_failed',
  ]);
  for (const failure of Object.values(archiveFailures)) {
    if (failure === 'may_pass') continue;
    for (const [kind, code] of Object.entries(failure.codes)) {
      const isTold = failure.alarms.some((alarmed) => alarmed === kind) && code.startsWith('backup_');
      expect(`${code} ${problems[code].advice.includes('staff have been told')}`).toBe(`${code} ${isTold}`);
    }
  }
});
