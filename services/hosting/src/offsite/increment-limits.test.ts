import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { directoryRoot, pack } from '@drydock/archive';
import { translated } from '../providers/local-errors';
import { asIncrement } from './copy-offsite.workflow';

const folder = mkdtempSync(path.join(tmpdir(), 'drydock-increment-'));
writeFileSync(path.join(folder, 'page'), '0123456789');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Packs a file of ten bytes within a limit, as the driver of an agent does. */
const packWithin = (rawBytesMax: number): Promise<unknown> =>
  translated(
    pack({
      roots: [directoryRoot('files', folder)],
      sink: { write: async () => undefined },
      key: Buffer.alloc(32, 5),
      identity: { archiveId: 'one', siteId: 'site', orgId: 'org', sequence: 1 },
      createdAt: new Date(),
      limits: { rawBytesMax },
    }),
    'pack',
  );

it('an increment beyond a limit of archives is refused with the advice to take a full copy, and blames no content', async () => {
  await expect(asIncrement(packWithin(9))).rejects.toMatchObject({
    problem: { code: 'copy_too_large', detail: 'more than 9 bytes: take a full copy, which begins a new chain' },
    alarm: undefined,
  });
  await expect(packWithin(9)).rejects.toMatchObject({ refusal: 'content_not_packed' });
  expect(await asIncrement(packWithin(10))).toMatchObject({ rawBytes: 10 });
});
