import readline from 'node:readline';
import { Writable } from 'node:stream';
import { InterruptedError, UsageError } from './exit';
import { clean } from './output';

/**
 * Tells whether the command can ask the user. The question is written to stderr and the answer is read from stdin, so
 * both must be terminals.
 */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

export const tell = (line: string): void => void process.stderr.write(`${line}\n`);

/** Asks for a line. With `hidden`, the terminal does not show what is typed. */
export function ask(question: string, { hidden = false } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = readline.createInterface({
      input: process.stdin,
      output: hidden ? nowhere : process.stderr,
      terminal: true,
      historySize: 0,
    });
    const finish = (conclude: () => void): void => {
      lines.removeAllListeners();
      lines.close();
      if (hidden) process.stderr.write('\n');
      conclude();
    };
    lines.once('line', (line) => finish(() => resolve(line.trim())));
    lines.once('SIGINT', () => finish(() => reject(new InterruptedError('interrupted'))));
    lines.once('close', () => finish(() => reject(new UsageError('No answer was given'))));
    // The question is written only after `createInterface` has switched off the terminal's own echo. So a hidden answer
    // is not shown, even if it is typed at once.
    lines.setPrompt(question);
    if (hidden) process.stderr.write(question);
    else lines.prompt();
  });
}

export async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Opens a progress line on stderr, in which each text replaces the one before. Nothing is shown if stderr is not a
 * terminal.
 */
export function openProgress(): { show(text: string): void; end(): void } {
  let isShown = false;
  return {
    show: (text) => {
      if (process.stderr.isTTY !== true) return;
      const width = Math.max(20, (process.stderr.columns ?? 80) - 1);
      process.stderr.write(`\r\u001b[K${Array.from(clean(text)).slice(0, width).join('')}`);
      isShown = true;
    },
    end: () => {
      if (isShown) process.stderr.write('\r\u001b[K');
      isShown = false;
    },
  };
}
