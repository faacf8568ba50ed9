/** One word of a POSIX shell's command line, whatever is in it. Throws for NUL, which no argument can carry. */
export function quoteArgument(argument: string): string {
  if (argument.includes('\0')) throw new Error('NUL in an argument of a remote command');
  return `'${argument.replaceAll("'", String.raw`'\''`)}'`;
}

/** A constant script with arguments that it sees as $1, $2, …: nothing of them is ever parsed as a command. */
export const remoteCommand = (script: string, args: readonly string[]): string =>
  ['sh', '-c', script, 'drydock', ...args].map(quoteArgument).join(' ');
