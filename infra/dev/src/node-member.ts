import { spawnGuarded } from '@drydock/process/guarded-child';
import { openChildLog } from './child-log';
import { inRepo, repoRoot } from './repo-root';
import { createErrorSummary } from './summarise-errors';
import type { Member, Running } from './supervisor';

export interface NodeProgram {
  name: string;
  /** Built entry point, relative to the clone's root. */
  entry: string;
  port: number;
  /** Node's own. */
  flags: readonly string[];
  environment: Readonly<Record<string, string>>;
}

/** Beyond the 25 s that a process of ours allows itself to hand over its work. */
const stopTimeoutMs = 28_000;

/** A process of ours: Node with the telemetry preload, its own environment and nothing of ours, its output in `<logsDir>/<name>.log`. */
export function nodeMember(program: NodeProgram, logsDir: string, say: (line: string) => void): Member {
  const { name, port } = program;
  const entry = inRepo(program.entry);
  const start = async (): Promise<Running> => {
    const log = openChildLog(logsDir, name);
    const summarise = createErrorSummary(name, say);
    const preload = inRepo('packages/service/dist/telemetry/telemetry.js');
    const child = await spawnGuarded(process.execPath, [...program.flags, '--require', preload, '--enable-source-maps', entry], {
      cwd: repoRoot,
      env: { ...program.environment, SERVICE_NAME: name, HOST: '127.0.0.1', PORT: String(port) },
      stdio: ['ignore', 'pipe', 'pipe'],
      signalOnOrphan: 'SIGTERM',
    });
    for (const stream of [child.process.stdout, child.process.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        log.write(chunk);
        summarise(chunk.toString());
      });
    }
    return { port, proof: child.proof, program: entry, exited: child.exited, stop: () => child.stop('SIGTERM', stopTimeoutMs) };
  };
  return { name, start };
}
