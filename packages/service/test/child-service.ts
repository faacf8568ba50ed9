import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { request as send } from 'undici';
import { uuidv7 } from 'uuidv7';
import { signRequestToken, tokenKey } from '../src/access/internal-token';
import { timeoutScale } from '../src/testing/service-api';
import { caller, tokenSecret } from './fixture';

const dist = path.join(__dirname, '../dist');

export interface ChildService {
  child: ChildProcess;
  port: number;
  /** The log lines so far. */
  lines: Array<Record<string, unknown>>;
  /** Resolves with the exit code or the signal. */
  gone: Promise<number | string>;
  get: Call;
  post: Call;
}

/** Calls `/v1/things/{name}`. */
type Call = (
  name: string,
  options?: { idempotencyKey?: string; traceparent?: string },
) => Promise<{ status: number; text: string; headers: Record<string, unknown> }>;

/**
 * Starts the compiled {@link file://../src/testing/service-process.ts} as a process, with telemetry preloaded as in
 * production.
 */
export async function startChildService(env: Record<string, string>): Promise<ChildService> {
  if (!existsSync(path.join(dist, 'testing/service-process.js')))
    throw new Error('build first: npx tsc -b packages/service');
  const child = spawn(
    process.execPath,
    ['--require', path.join(dist, 'telemetry/preload.js'), path.join(dist, 'testing/service-process.js')],
    {
      env: { PATH: process.env['PATH'], ...timeoutScale(), INTERNAL_TOKEN_SECRET: tokenSecret, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const gone = once(child, 'exit').then(([code, signal]: Array<number | string | null>) => code ?? signal ?? 'unknown');
  const lines: Array<Record<string, unknown>> = [];
  const port = await new Promise<number>((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk) => {
      text += String(chunk);
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const line: Record<string, unknown> = JSON.parse(text.slice(0, end));
        text = text.slice(end + 1);
        lines.push(line);
        if (typeof line['port'] === 'number') resolve(line['port']);
      }
    });
    void gone.then((how) => reject(new Error(`the process ended with ${how}`)));
  });
  const callBy =
    (method: 'GET' | 'POST'): Call =>
    async (name, { idempotencyKey, traceparent } = {}) => {
      const bound = { requestId: uuidv7(), method, path: `/v1/things/${name}`, idempotencyKey };
      const token = signRequestToken(tokenKey(tokenSecret), 'kit-test', caller, bound);
      const response = await send(`http://127.0.0.1:${port}${bound.path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(traceparent === undefined ? {} : { traceparent }),
        },
      });
      return { status: response.statusCode, text: await response.body.text(), headers: response.headers };
    };
  return { child, port, lines, gone, get: callBy('GET'), post: callBy('POST') };
}
