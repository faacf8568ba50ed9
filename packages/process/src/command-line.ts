import { type ParseArgsConfig, parseArgs } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;
type Read<O extends Options> = ReturnType<typeof parseArgs<{ args: string[]; options: O; allowPositionals: true }>>;

/**
 * Reads a program's arguments. `--help` prints `usage` and exits with 0. An unknown option, or more words than
 * `wordsMax`, prints the problem and exits with 2. A program calls this function before it does anything else.
 */
export function readCommandLine<const O extends Options>(
  usage: string,
  { options, wordsMax = 0 }: { options: O; wordsMax?: number },
  args: string[] = process.argv.slice(2),
): Read<O> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`usage: ${usage}\n`);
    process.exit(0);
  }
  try {
    const read = parseArgs({ args, options, allowPositionals: true });
    const excess = read.positionals[wordsMax];
    if (excess !== undefined) throw new Error(`Unexpected argument '${excess}'`);
    return read;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\nusage: ${usage}\n`);
    process.exit(2);
  }
}
