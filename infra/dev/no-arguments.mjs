// For scripts that take no argument and run before the build. Built programs use readCommandLine of packages/process.

/** Prints the usage and ends the program when the argument is `--help` or `-h`. Any other argument is an error. */
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
