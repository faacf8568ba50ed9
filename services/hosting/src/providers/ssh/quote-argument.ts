/** Quotes one word for a POSIX shell, whatever it contains. Throws for NUL, which no argument can carry. */
export function quoteArgument(argument: string): string {
  if (argument.includes('\0')) throw new Error('NUL in an argument of a remote command');
  return `'${argument.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * The command line for a constant script with arguments that it sees as $1, $2, …: no part of them is ever parsed as a
 * command. The host itself ends it after `limitSeconds`, with every process that it has started, because a lost
 * connection ends nothing there.
 */
export const remoteCommand = (script: string, args: readonly string[], limitSeconds: number): string =>
  ['timeout', '--kill-after=5', String(limitSeconds), 'sh', '-c', script, 'drydock', ...args]
    .map(quoteArgument)
    .join(' ');
