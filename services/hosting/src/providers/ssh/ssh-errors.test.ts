import { remoteFailure } from './run-on-site';
import { skippedIn } from './ssh-archive';

const policy = `pg_dump: error: Dumping the contents of table "orders" failed: PQgetResult() failed.
pg_dump: detail: Error message from server: ERROR:  query would be affected by row-level security policy for table "orders"`;

it('content that no dump can read is named, with the reason', () => {
  expect(remoteFailure(96, policy)).toMatchObject({
    refusal: 'content_not_packed',
    content: {
      object: 'table "orders"',
      reason: 'query would be affected by row-level security policy for table "orders"',
    },
  });
  expect(
    remoteFailure(96, 'mariadb-dump: Got error: 1449: "The user specified as a definer does not exist"'),
  ).toMatchObject({
    refusal: 'content_not_packed',
    content: { object: null, reason: expect.stringContaining('definer') },
  });
});

it('a dump that failed for a transient reason is tried again', () => {
  for (const errors of [
    'ERROR:  canceling statement due to lock timeout',
    `${policy}\nserver closed the connection unexpectedly`,
  ])
    expect(remoteFailure(96, errors)).toMatchObject({ name: 'RemoteError' });
});

it('content that does not load is named as the archive’s table of contents names it', () => {
  const errors = `pg_restore: error: could not execute query: ERROR:  division by zero
pg_restore: from TOC entry 3350; 1259 16390 INDEX shares s_owner`;
  expect(remoteFailure(95, errors)).toMatchObject({
    refusal: 'content_not_loaded',
    content: { object: 'INDEX shares', reason: 'division by zero' },
  });
});

it('what the host’s tar leaves out is told by its path', () => {
  expect(skippedIn('tar: ./a/run.sock: socket ignored')).toEqual({
    path: 'a/run.sock',
    reason: 'a socket or a device',
  });
  expect(skippedIn('tar: ./a/cache: link into a release')?.reason).toContain('leads nowhere after a restore');
  expect(skippedIn('tar: ./a/disk: device ignored')).toEqual({ path: 'a/disk', reason: 'a socket or a device' });
  expect(skippedIn('tar: ./a: Warning: Cannot open: Permission denied')).toEqual({
    path: 'a',
    reason: 'Cannot open: Permission denied',
  });
  expect(skippedIn('tar: ./log.txt: file changed as we read it')).toEqual({
    path: 'log.txt',
    reason: 'changed while it was read',
  });
  expect(skippedIn('tar: ./gone: File removed before we read it')).toBeNull();
});

it('a file that the host’s tar has filled up with zeros is told', () => {
  for (const bytes of ['1 byte', '399931392 bytes'])
    expect(skippedIn(`tar: ./config.php: File shrank by ${bytes}; padding with zeros`)).toEqual({
      path: 'config.php',
      reason: 'changed while it was read',
    });
  expect(
    skippedIn('tar: ./photo.jpg: Warning: Read error at byte 0, while reading 10240 bytes: Input/output error'),
  ).toEqual({
    path: 'photo.jpg',
    reason: 'Read error at byte 0, while reading 10240 bytes: Input/output error',
  });
});
