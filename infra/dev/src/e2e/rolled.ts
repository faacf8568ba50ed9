import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { timeoutScale } from '@drydock/service/testing/service-api';
import { InvariantViolated, until } from '@drydock/testing/wait';
import { z } from 'zod';
import { inRepo } from '../dev-config';

const logLineSchema = z.looseObject({ msg: z.string(), phase: z.string().optional(), outcome: z.string().optional() });

/** The time limit of a start while the machine is busy with requests, in milliseconds. */
const startMs = 120_000;

/** A process that has the same address after each restart. `environment` is called at each start. */
export class Rolled {
  readonly url: string;
  private readonly program: string;
  private readonly environment: () => Readonly<Record<string, string>>;
  private readonly port: number;
  private child: ReturnType<typeof spawn> | undefined;
  private phases: string[] = [];

  constructor(program: string, port: number, environment: () => Readonly<Record<string, string>>) {
    this.program = program;
    this.port = port;
    this.environment = environment;
    this.url = `http://127.0.0.1:${port}`;
  }

  async start(): Promise<void> {
    const env = { PATH: process.env['PATH'], ...timeoutScale(), ...this.environment(), PORT: String(this.port) };
    const child = spawn(process.execPath, ['--enable-source-maps', inRepo(this.program)], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.child = child;
    let isListening = false;
    this.phases = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { msg, phase, outcome } = logLineSchema.parse(JSON.parse(line));
      if (msg === 'listening') isListening = true;
      if (phase !== undefined) this.phases.push(`${phase} ${outcome}`);
    });
    const hasBegun = (): boolean => {
      if (child.exitCode !== null) throw new InvariantViolated(`${this.program} ended before it listened`);
      return isListening;
    };
    await until(hasBegun, { timeoutMs: startMs, what: `${this.program} to listen` });
  }

  /**
   * Ends the process. Resolves with its exit code or signal, and with the first phase of its shutdown if it had any.
   */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<unknown[]> {
    const { child } = this;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return [];
    const gone = once(child, 'close');
    child.kill(signal);
    const [code, by] = await gone;
    return [code ?? by, ...this.phases.slice(0, 1)];
  }
}

export const isReady = async (url: string): Promise<boolean> => {
  const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } }).catch(() => undefined);
  await answer?.arrayBuffer();
  return answer?.status === 200;
};
