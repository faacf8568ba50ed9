import { missingTools } from './needs';

const { env } = process;
afterEach(() => {
  process.env = env;
});

test('a missing tool is named in the title, and is an error in CI', () => {
  process.env = { ...env, PATH: '/nowhere', CI: undefined };
  expect(missingTools()).toBe('');
  expect(missingTools('acl', 'attr')).toBe(' (needs getfacl, getfattr)');
  process.env['CI'] = 'true';
  expect(() => missingTools('redis')).toThrow('Not on the PATH: valkey-server or redis-server');
});
