import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';

/** The bundled program that customers get. */
export const program = path.resolve(__dirname, '../../dist/drydock.js');
export const key = 'dd_test_abc_notforeyes';

/** An answer of the server, with the status 200 by default. `text` is sent as it is; `body` is sent as JSON. */
export interface Answer {
  status?: number;
  body?: unknown;
  text?: string;
  headers?: Record<string, string>;
}

export interface Seen {
  call: string;
  body: unknown;
  authorization: string | undefined;
  idempotencyKey: unknown;
  text: string;
  headers: Record<string, string>;
}

export interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * A server on a real socket that answers like Drydock, and the command that calls it. The command has a home folder of
 * its own.
 */
export class Bench {
  /** The answers to each call, such as `GET /v1/sites`, in order. The last answer is repeated. */
  answers: Record<string, Answer[]> = {};
  seen: Seen[] = [];
  readonly home = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-cli-'));
  #server: Server | undefined;
  url = '';

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      let text = '';
      request.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      request.once('end', () => {
        const call = `${request.method} ${request.url}`;
        const { authorization, 'idempotency-key': idempotencyKey } = request.headers;
        const sent = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
        this.seen.push({
          call,
          body: text === '' ? undefined : JSON.parse(text),
          authorization,
          idempotencyKey,
          text,
          headers: sent,
        });
        const left = this.answers[call] ?? [{ status: 404, body: problem(404, 'route_not_found') }];
        const { status = 200, body, text: raw, headers } = (left.length > 1 ? left.shift() : left[0]) ?? {};
        const type = status < 400 ? 'application/json' : 'application/problem+json';
        response
          .writeHead(status, { 'content-type': type, ...headers })
          .end(raw ?? (body === undefined ? '' : JSON.stringify(body)));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
    fs.rmSync(this.home, { recursive: true, force: true });
  }

  environment(own: Record<string, string> = { DRYDOCK_URL: this.url, DRYDOCK_KEY: key }): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], HOME: this.home, XDG_CONFIG_HOME: this.home, ...own };
  }

  /** Runs the command without a terminal: stdin, stdout and stderr are pipes. */
  run(
    words: readonly string[],
    { input = '', env }: { input?: string; env?: Record<string, string> } = {},
  ): Promise<Outcome> {
    const child = spawn(process.execPath, [program, ...words], { env: this.environment(env), ...untilGivenUp });
    child.stdin.end(input);
    return outcomeOf(child);
  }

  /**
   * Runs the command in a pseudo-terminal of 100 columns, and types each answer when its question is shown. The
   * terminal's whole output is in stdout.
   */
  runOnTerminal(words: readonly string[], dialogue: Dialogue = []): Promise<Outcome> {
    const quoted = [process.execPath, program, ...words].map((word) => `'${word}'`).join(' ');
    return onTerminal(`exec ${quoted}`, dialogue, this.environment());
  }
}

/** Limits a run that would wait for ever, for example for a question that never appears. */
const untilGivenUp = { timeout: 60_000, killSignal: 'SIGKILL' } as const;

/** Used in a dialogue in place of keys, for a user who closes the terminal's window. */
export const closeWindow = Symbol('close the window');

/** Each pair is a text that the terminal shows, and the keys that are typed once it is shown. */
export type Dialogue = readonly (readonly [shown: string, typed: string | typeof closeWindow])[];

export function onTerminal(shellCommand: string, dialogue: Dialogue, env: NodeJS.ProcessEnv): Promise<Outcome> {
  const child = spawn('script', ['-qec', `stty cols 100 rows 40; ${shellCommand}`, '/dev/null'], {
    env: { ...env, TERM: 'xterm', SHELL: '/bin/sh' },
    ...untilGivenUp,
  });
  let unread = '';
  const left = [...dialogue];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    unread += chunk;
    const [next] = left;
    if (next === undefined || !unread.includes(next[0])) return;
    left.shift();
    unread = '';
    if (next[1] === closeWindow) child.kill('SIGTERM');
    else child.stdin.write(next[1]);
  });
  return outcomeOf(child);
}

function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const outcome: Outcome = { code: null, stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    outcome.stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    outcome.stderr += chunk;
  });
  return new Promise((resolve, reject) =>
    child.once('close', (code, signal) => {
      if (signal === untilGivenUp.killSignal)
        reject(new Error(`given up after ${untilGivenUp.timeout} ms: ${outcome.stdout}${outcome.stderr}`));
      else resolve({ ...outcome, code });
    }),
  );
}

export const problem = (status: number, code: string) => ({
  type: `/problems/${code}`,
  title: 'A title',
  status,
  detail: 'Do this.',
  code,
  request_id: 'request-1',
});

export const workflowPath = '/v1/sites/site-1/workflows/workflow-1';
export const workflow = (status: string, progress: number, error: unknown = null) => ({
  id: 'workflow-1',
  kind: 'restore_site_backup',
  subject: { type: 'site', id: 'site-1' },
  status,
  created_at: '2026-01-01T00:00:00.000Z',
  started_at: '2026-01-01T00:00:01.000Z',
  finished_at: status === 'running' ? null : '2026-01-01T00:01:00.000Z',
  progress,
  steps: [
    {
      name: 'stage',
      status: status === 'running' ? 'running' : 'done',
      attempts: 1,
      started_at: null,
      finished_at: null,
    },
  ],
  error,
  findings: [],
  trace_id: null,
});
export const accepted: Answer = { status: 202, body: { in_progress: true }, headers: { location: workflowPath } };
