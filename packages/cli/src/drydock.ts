// The command `drydock`. bundle.mjs bundles it into one file, dist/drydock.js.
import { exitCodeOf, exitCodes, messageOf } from './exit';
import { buildProgram } from './program';

async function main(words: readonly string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(words, { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    process.stderr.write(messageOf(error));
    return exitCodeOf(error);
  }
}

// A reader such as `head` may close the pipe early. The command has not failed then.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? exitCodes.done : exitCodes.defect),
);
void main(process.argv.slice(2)).then((code) => process.exit(code));
