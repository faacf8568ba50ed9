import { spawn } from 'node:child_process';

/** Returns the median. If the number of values is even, it is the higher of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('nothing was measured');
  return middle;
}

export interface Command {
  bin: string;
  args: readonly string[];
  cwd?: string;
  env?: Record<string, string>;
}

/**
 * Runs a command. Resolves with its seconds and its output. Rejects with the end of its output if the command fails.
 */
export function timeCommand({ bin, args, cwd, env }: Command): Promise<{ seconds: number; output: string }> {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn(bin, [...args], { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const said: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => said.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => said.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      const output = Buffer.concat(said).toString();
      if (code === 0) resolve({ seconds: (performance.now() - started) / 1000, output });
      else reject(new Error(`${bin} ${args.join(' ')} ended with ${code}\n${output.slice(-2000)}`));
    });
  });
}

export async function isInstalled(bin: string): Promise<boolean> {
  return timeCommand({ bin: 'sh', args: ['-c', `command -v ${bin}`] }).then(
    () => true,
    () => false,
  );
}
