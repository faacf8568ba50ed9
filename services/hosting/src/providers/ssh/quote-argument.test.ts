import { execFileSync } from 'node:child_process';
import { remoteCommand } from './run-on-site';

describe('arguments of a remote command', () => {
  it.each([
    '',
    ' ',
    "it's",
    "'; touch /nowhere; '",
    '$(id)`id`$HOME',
    'line\nbreak\ttab',
    '-n',
    '"\\*?[a]{b,c}~!#&|<>',
  ])('arrive as they were given, and nothing of them runs: %j', (argument) => {
    const command = remoteCommand(`printf '%s|' "$@"`, [argument, 'end'], 10);
    expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' })).toBe(`${argument}|end|`);
  });

  it('are refused when they hold what no argument can carry', () => {
    expect(() => remoteCommand('true', ['a\0b'], 10)).toThrow('NUL');
  });
});
