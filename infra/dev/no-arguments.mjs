// For the scripts that take no argument and run before anything is built. Programs that are built use readCommandLine.

/** Prints the usage and ends the program when it is asked for help. Refuses every other argument. */
export function expectNoArguments(usage) {
  const [argument] = process.argv.slice(2);
  if (argument === undefined) return;
  if (argument === '--help' || argument === '-h') {
    console.log(usage);
    process.exit(0);
  }
  console.error(`Unexpected argument '${argument}'\n${usage}`);
  process.exit(2);
}
