import { ConnectionError, ProblemError, WaitTimeoutError, WorkflowError } from '@drydock/client';
import { CommanderError } from 'commander';
import { clean } from './output';

/** The exit codes of `drydock`. Scripts rely on these numbers. docs/guides/command.md lists them. */
export const exitCodes = {
  done: 0,
  /** Any other error, such as a defect of the command. */
  defect: 1,
  usage: 2,
  notAllowed: 3,
  notFound: 4,
  refused: 5,
  stillRunning: 6,
  failed: 7,
  unavailable: 8,
  /** The work was accepted and goes on, but its state could not be read, so that `--wait` does not know its end. */
  endUnknown: 9,
  interrupted: 130,
} as const;

/** The user's input is invalid, or the user did not confirm the call. Nothing was changed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** A failure that was already printed, such as the refusal in a preflight or a failed check of `doctor`. */
export class ShownError extends Error {
  override readonly name = 'ShownError';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('');
    this.exitCode = exitCode;
  }
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof ShownError) return error.exitCode;
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  if (error instanceof ProblemError) return exitCodeOfStatus(error.status);
  if (error instanceof ConnectionError) return exitCodes.unavailable;
  if (error instanceof WaitTimeoutError) return exitCodes.stillRunning;
  if (error instanceof WorkflowError) return exitCodes.failed;
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  return exitCodes.defect;
}

export function exitCodeOfStatus(status: number): number {
  if (status === 401 || status === 403) return exitCodes.notAllowed;
  if (status === 404) return exitCodes.notFound;
  return status >= 500 ? exitCodes.unavailable : exitCodes.refused;
}

/**
 * Returns the error's message for stderr, with a hint for some errors. Returns an empty text if the error has already
 * been printed.
 */
export function messageOf(error: unknown): string {
  if (error instanceof ShownError || error instanceof CommanderError) return '';
  if (error instanceof ProblemError) {
    const fields = error.errors.map(({ pointer, detail }) => `  ${clean(pointer)}: ${clean(detail)}\n`);
    const hint = error.status === 401 ? '  drydock doctor says which key is used, and from where.\n' : '';
    return `drydock: ${clean(error.message)}\n${fields.join('')}${hint}`;
  }
  if (error instanceof WorkflowError) {
    const { id, status, error: problem } = error.workflow;
    const code = problem === null ? '' : ` (${problem.code}, workflow ${id})`;
    const hint =
      status === 'needs_attention' ? '  It waits for staff; nothing else begins on the resource meanwhile.\n' : '';
    return `drydock: ${clean(`${error.message}${code}`)}\n${hint}`;
  }
  if (error instanceof ConnectionError)
    return `drydock: ${clean(error.message)}\n  drydock doctor looks at what is between here and there.\n`;
  return `drydock: ${clean(error instanceof Error ? error.message : String(error))}\n`;
}
