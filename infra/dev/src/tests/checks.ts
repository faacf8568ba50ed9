import { spawn } from 'node:child_process';

interface Check {
  name: string;
  command: string;
  args: string[];
}

const checks: Check[] = [
  { name: 'format and lint (biome)', command: 'biome', args: ['ci', '--colors=off', '.'] },
  { name: 'lint with types (oxlint)', command: 'oxlint', args: ['--type-aware', '--deny-warnings'] },
  { name: 'types, those of the tests too (tsc)', command: 'tsc', args: ['-b'] },
  { name: 'import rules (turbo boundaries)', command: 'turbo', args: ['boundaries'] },
  {
    name: 'docker-compose.yml and its secrets (npm run compose)',
    command: 'node',
    args: ['infra/dev/dist/compose.js', '--check'],
  },
  { name: 'the Helm chart (npm run helm)', command: 'node', args: ['infra/dev/dist/helm.js', '--check'] },
  {
    name: 'rules of the house (packages/testing/src/conventions)',
    command: 'jest',
    args: ['--config=packages/testing/conventions.jest.config.cjs', '--silent'],
  },
  { name: 'unused files, exports and dependencies (knip)', command: 'knip', args: ['--no-progress'] },
];

/** Runs all checks, two at a time, and prints the output of the failed ones. */
export async function runChecks(write: (line: string) => void): Promise<{ passed: number; failed: number }> {
  let failed = 0;
  const waiting = [...checks];
  const work = async (): Promise<void> => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      const started = performance.now();
      const { code, output } = await capture(check);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      write(`${code === 0 ? 'ok    ' : 'FAILED'} ${check.name} (${seconds} s)`);
      if (code === 0) continue;
      failed += 1;
      write(output);
    }
  };
  await Promise.all([work(), work()]);
  return { passed: checks.length - failed, failed };
}

function capture({ command, args }: Check): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error) => resolve({ code: 1, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString() }));
  });
}
