/**
 * Runs a command for a person: it ends with the exit code that `main` resolves with; a failure is printed on stderr,
 * with exit code 1.
 */
export function runCommand(main: () => Promise<number>): void {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}
