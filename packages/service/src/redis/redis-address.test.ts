import { parseRedisUrl } from './open-redis';

it.each([
  ['redis://localhost', { kind: 'single', node: { host: 'localhost', port: 6379 }, db: 0, isTls: false }],
  [
    'rediss://me:p%40ss@redis.example.net:7000/3',
    {
      kind: 'single',
      node: { host: 'redis.example.net', port: 7000 },
      db: 3,
      isTls: true,
      username: 'me',
      password: 'p@ss',
    },
  ],
  [
    'redis+cluster://:secret@a:7000?node=b:7001&node=[::1]:7002',
    {
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 7000 },
        { host: 'b', port: 7001 },
        { host: '::1', port: 7002 },
      ],
      password: 'secret',
      isTls: false,
    },
  ],
  [
    'rediss+sentinel://s1/queue/2?node=s2&sentinelPassword=x',
    {
      kind: 'sentinel',
      nodes: [
        { host: 's1', port: 26379 },
        { host: 's2', port: 26379 },
      ],
      master: 'queue',
      db: 2,
      sentinelPassword: 'x',
      isTls: true,
    },
  ],
])('%s is parsed', (url, address) => {
  expect(parseRedisUrl(url)).toEqual(address);
});

it.each(['http://a', 'redis+sentinel://s1', 'redis://a/first', 'postgresql://a/b'])('%s is refused', (url) => {
  expect(() => parseRedisUrl(url)).toThrow(TypeError);
});
