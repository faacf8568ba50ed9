import { Listr } from 'listr2';

/** One thing that takes a while. `tell` shows a line below it while it runs. */
export interface Step {
  title: string;
  run(tell: (line: string) => void): Promise<void>;
}

/** Runs steps in order: a moving list on a terminal, one plain line for each in CI or a pipe. The first that fails ends it. */
export async function runSteps(steps: readonly Step[], output: NodeJS.WriteStream = process.stdout): Promise<void> {
  if (!output.isTTY || (process.env['CI'] ?? '') !== '') {
    for (const step of steps) {
      output.write(`${step.title}\n`);
      await step.run((line) => output.write(`  ${line}\n`));
    }
    return;
  }
  const tasks = steps.map((step) => ({
    title: step.title,
    task: (_context: unknown, task: { output: string }) =>
      step.run((line) => {
        task.output = line;
      }),
  }));
  // signals are the supervisor's: listr2 would end the process at once
  await new Listr(tasks, { registerSignalListeners: false, rendererOptions: { collapseErrors: false } }).run();
}
