/** @processes */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { faultpoint, InjectedFault } from './faultpoint';

describe('faultpoint', () => {
  let folder: string;
  const token = (name: string): void => writeFileSync(path.join(folder, name), '');
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'drydock-faults-'));
    process.env['DRYDOCK_FAULTS'] = folder;
  });
  afterEach(() => {
    delete process.env['DRYDOCK_FAULTS'];
    rmSync(folder, { recursive: true });
  });

  it('does nothing without its setting or without a token for its point', () => {
    token('restore.fetch.before@throw');
    delete process.env['DRYDOCK_FAULTS'];
    expect(faultpoint('restore.fetch.before')).toBe('continue');
    process.env['DRYDOCK_FAULTS'] = folder;
    expect(faultpoint('restore.fetch')).toBe('continue');
    process.env['DRYDOCK_FAULTS'] = path.join(folder, 'missing');
    expect(faultpoint('restore.fetch.before')).toBe('continue');
  });

  it('takes one token at a time, the lowest number first', () => {
    token('a@repeat@2');
    token('a@throw@1');
    token('a@nonsense');
    expect(() => faultpoint('a')).toThrow(new InjectedFault('a'));
    expect(faultpoint('a')).toBe('repeat');
    expect(faultpoint('a')).toBe('continue');
    expect(readdirSync(folder)).toEqual(['a@nonsense']);
  });

  const spawnAt = (mode: string) => {
    token(`b@${mode}`);
    const script = `require(${JSON.stringify(path.resolve(__dirname, '../dist/faultpoint.js'))}).faultpoint('b'); console.log('after');`;
    const child = spawn(process.execPath, ['-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env },
    });
    const printed: string[] = [];
    child.stdout.on('data', (chunk) => printed.push(String(chunk)));
    return { child, printed, gone: once(child, 'close') };
  };

  it('mode kill ends the process by SIGKILL', async () => {
    const { printed, gone } = spawnAt('kill');
    expect((await gone)[1]).toBe('SIGKILL');
    expect(printed).toEqual([]);
  });

  it('mode stop freezes the process until SIGCONT', async () => {
    const { child, printed, gone } = spawnAt('stop');
    while (readdirSync(folder).length > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(printed).toEqual([]);
    const nudge = setInterval(() => child.kill('SIGCONT'), 50);
    await gone;
    clearInterval(nudge);
    expect(printed).toEqual(['after\n']);
  });
});
