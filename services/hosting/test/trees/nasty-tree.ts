import type { PathToMake } from './build-tree';

/*
 * Paths of every kind that a file system takes, chosen because programs that copy files may fail on them. Each
 * character of a name stands for one byte.
 */

const utf8 = (text: string): string => Buffer.from(text).toString('latin1');

const names = [
  'caf\xe9',
  '\xff\xfe',
  '\xed\xa0\x80',
  '\xc0\x80',
  '\x01\x1b[31m',
  '\x7f',
  'two\nlines',
  '\n',
  'carriage\rreturn',
  'tab\tbed',
  ' ',
  ' leading',
  'trailing ',
  '-rf',
  '--',
  '--checkpoint-action=exec=sh',
  '*',
  '?',
  '$(touch x)',
  '`id`',
  ';',
  '|',
  '~',
  '#',
  "it's",
  '"',
  '\\',
  '\\012',
  'a\\..\\b',
  utf8('e\u0301'),
  utf8('\u00e9'),
  'Case',
  'case',
  'con',
  'a:b',
  'k=v',
  '.hidden',
  '..a',
  '...',
  'x'.repeat(255),
  '\xff'.repeat(255),
  utf8('\u20ac'.repeat(85)),
  utf8('🚢'.repeat(63)),
  utf8('\u202eevil'),
  '%2e%2e',
  'NUL.txt',
  '@LongLink',
  '.wh.whiteout',
  'lost+found',
] as const;

const file = (path: string, more: Partial<PathToMake> = {}): PathToMake => ({
  path,
  type: 'file',
  content: path,
  ...more,
});
const folder = (path: string, more: Partial<PathToMake> = {}): PathToMake => ({ path, type: 'folder', ...more });
const link = (path: string, target: string, more: Partial<PathToMake> = {}): PathToMake => ({
  path,
  type: 'link',
  target,
  ...more,
});
const hard = (path: string, target: string): PathToMake => ({ path, type: 'hard', target });

const octal = (mode: number): string => mode.toString(8).padStart(4, '0');
const fileModes = [0o000, 0o001, 0o111, 0o222, 0o400, 0o444, 0o606, 0o666, 0o755, 0o777];
const folderModes = [0o000, 0o111, 0o300, 0o500, 0o555, 0o705, 0o777, 0o1777, 0o2755, 0o3770];
const times = [
  '0',
  '1',
  '-1',
  '-2000000000',
  '-0.000000001',
  '1500000000.000000001',
  '1500000000.999999999',
  '2147483648',
  '4294967296.5',
];
const mebibyte = 2 ** 20;

const contents: PathToMake[] = [
  file('content/empty', { content: '' }),
  file('content/one-byte', { content: '\0' }),
  file('content/zeros', { content: Buffer.alloc(300_000) }),
  file('content/segment', { content: Buffer.alloc(8 * mebibyte, 'segment') }),
  file('content/segment-and-one', { content: Buffer.alloc(8 * mebibyte + 1, 'more') }),
  file('content/hole', { sparse: { size: 64 * mebibyte, pieces: [] } }),
  file('content/hole-first', { sparse: { size: 20 * mebibyte, pieces: [[20 * mebibyte - 3, 'end']] } }),
  file('content/hole-last', { sparse: { size: 20 * mebibyte, pieces: [[0, 'begin']] } }),
  file('content/islands', {
    sparse: {
      size: 30 * mebibyte + 7,
      pieces: [
        [4095, 'across a page'],
        [10 * mebibyte - 1, 'across a frame'],
        [16 * mebibyte, 'at a segment'],
      ],
    },
  }),
];

const hardLinks: PathToMake[] = [
  file('shared/a/first', { mode: 0o640, mtime: '1400000000.5' }),
  hard('shared/b/second', 'shared/a/first'),
  hard('shared/\xff', 'shared/a/first'),
  file('shared/z', { mode: 0o000 }),
  hard('shared/a.closed', 'shared/z'),
  file('shared/empty', { content: '' }),
  hard('shared/empty-too', 'shared/empty'),
  file('shared/with-attributes', { attributes: [['user.shared', Buffer.from('yes')]] }),
  hard('shared/a/with-attributes', 'shared/with-attributes'),
];

const links = (top: string): PathToMake[] => [
  link('links/relative', '../content/one-byte', { mtime: '1300000000.25' }),
  link('links/absolute-inside', `${top}/content/one-byte`),
  link('links/absolute-outside', '/etc/passwd'),
  link('links/relative-outside', '../../../../../../../../etc'),
  link('links/out-and-in', '../links/../links/relative'),
  link('links/dangling', 'nowhere/at\nall'),
  link('links/to-itself', 'to-itself'),
  link('links/to-dot', '.'),
  link('links/to-root', '/'),
  link('links/slash', '../content/'),
  link('links/no-utf8', '\xe9\xff'),
  link('links/longest', 't'.repeat(4095)),
  link('links/\xfe', 'relative', { mtime: '-5.5' }),
  link('linked-folder', 'content'),
];

const attributes: PathToMake[] = [
  file('attributes/text', { attributes: [['user.comment', Buffer.from('a comment')]] }),
  file('attributes/empty', { attributes: [['user.nothing', Buffer.alloc(0)]] }),
  file('attributes/binary', { attributes: [['user.bytes', Buffer.from([0, 255, 10, 34, 92])]] }),
  file('attributes/many', {
    attributes: Array.from({ length: 40 }, (_, at) => [`user.n${at}`, Buffer.from(String(at))] as const),
  }),
  file('attributes/long-name', { attributes: [[`user.${'n'.repeat(250)}`, Buffer.from('x')]] }),
  file('attributes/large', { attributes: [['user.large', Buffer.alloc(3000, 7)]] }),
  file('attributes/closed', {
    mode: 0o400,
    mtime: '1200000000.125',
    attributes: [['user.of-closed', Buffer.from('x')]],
  }),
  folder('attributes/folder', { mode: 0o755, attributes: [['user.of-folder', Buffer.from('x')]] }),
  file('attributes/caf\xe9\n', { attributes: [['user.of-nasty-name', Buffer.from('x')]] }),
];

/** The lists name only the account of the site, because any other id may belong to another account on the next host. */
const accessLists: PathToMake[] = [
  file('lists/named', { mode: 0o640, accessList: 'u:{uid}:rwx,g:{gid}:r' }),
  file('lists/masked', { mode: 0o640, accessList: 'u:{uid}:rwx,m::r' }),
  folder('lists/inherited', { mode: 0o2750, accessList: 'u:{uid}:rwx,d:u:{uid}:rwx,d:g::r-x,d:o::-' }),
  folder('lists/inherited/below', { mode: 0o770 }),
  file('lists/inherited/file', { mode: 0o604, mtime: '1100000000.0625' }),
];

const folders: PathToMake[] = [
  folder('empty', { mtime: '1000000000.000000007' }),
  // Bytes of these names sort just before and after the slash.
  file('order/a.txt'),
  file('order/a-b'),
  file('order/a/b'),
  file('order/a/'.concat('deep/'.repeat(300), 'bottom')),
  file('order/a0'),
  ...Array.from({ length: 500 }, (_, at) => file(`many/${at}`, { content: '' })),
];

/** Pipes, sockets, set-id and sticky files, and links with several names. */
const special: PathToMake[] = [
  { path: 'special/fifo', type: 'fifo', mode: 0o622, mtime: '900000000.5' },
  hard('special/fifo-too', 'special/fifo'),
  { path: 'special/socket', type: 'socket' },
  file('special/set-user-id', { mode: 0o4755 }),
  file('special/set-group-id', { mode: 0o2755 }),
  file('special/sticky', { mode: 0o1644 }),
  link('special/shared-link', 'fifo'),
  hard('special/shared-link-too', 'special/shared-link'),
];

/** Paths that only root can make. */
const ofRoot: PathToMake[] = [
  { path: 'special/device', type: 'device' },
  file('owners/user', { owner: { uid: 1000, gid: 1000 } }),
  file('owners/nobody', { owner: { uid: 65_534, gid: 65_534 } }),
  folder('owners/folder', { owner: { uid: 33, gid: 33 } }),
  link('owners/link', 'user', { owner: { uid: 33, gid: 0 } }),
];

/** Paths of every kind. `top` must be the folder in which they will be made, because some links contain its path. */
export function nastyTree(top: string): PathToMake[] {
  return [
    folder('.', {
      mode: 0o2751,
      mtime: '1234567890.123456789',
      attributes: [['user.top', Buffer.from('x')]],
      accessList: 'u:{uid}:rwx,d:u:{uid}:rwx',
    }),
    ...names.map((name) => file(`names/${name}`)),
    ...names.map((name) => file(`folders/${name}/inside`)),
    ...fileModes.map((mode) => file(`modes/file-${octal(mode)}`, { mode })),
    ...folderModes.map((mode) => file(`modes/folder-${octal(mode)}/inside`)),
    ...folderModes.map((mode) => folder(`modes/folder-${octal(mode)}`, { mode })),
    ...times.flatMap((mtime) => [
      file(`times/file${mtime}`, { mtime }),
      folder(`times/folder${mtime}`, { mtime }),
      link(`times/link${mtime}`, 'x', { mtime }),
    ]),
    ...contents,
    ...hardLinks,
    ...links(top),
    ...attributes,
    ...accessLists,
    ...folders,
    ...special,
    ...(process.getuid?.() === 0 ? ofRoot : []),
  ];
}
