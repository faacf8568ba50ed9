// flock --nonblock --no-fork FOLDER/lock node dist/providers/qemu/run-job.js FOLDER
// Carries out the machine's job, if there is one.
import { carryOutJob } from './carry-out-job';

carryOutJob(process.argv[2] ?? '').catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
