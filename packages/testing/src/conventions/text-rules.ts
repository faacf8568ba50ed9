import { isTest, type SourceFile } from './source-files';

interface TextRule {
  /** The rule, often with its exceptions. It is the title of the test. */
  reason: string;
  pattern: RegExp;
  allowedIn(file: SourceFile): boolean;
}

const at = (pattern: RegExp) => (file: SourceFile) => pattern.test(file.path) || isTest(file);

/**
 * Matches a statement, in SQL or with Prisma, that inserts, changes or deletes a workflow or a step. In SQL, columns
 * that begin with `dispatch` may be set.
 */
const stateWrite =
  /\b(?:INSERT INTO|DELETE FROM)\s+"?workflow(?:_step)?\b|\bUPDATE\s+"?workflow(?:_step)?"?\s+SET\b(?:(?!\b(?:WHERE|FROM)\b)[\s\S])*?\b(?!dispatch)[a-z_]+\s*=(?!>)|\.workflow(?:Step)?\.(?:create|update|upsert|delete)/;

export const textRules: TextRule[] = [
  {
    reason:
      'process.env is read in config.ts alone (and where no config can be: the telemetry preload, fault points, the redaction of logs, the detail of traces, programs in a box, the command line of infra)',
    pattern: /\bprocess\.env\b/,
    allowedIn: at(
      /\/config[^/]*\.ts$|telemetry[^/]*\.ts$|telemetry\/(redact|spans)\.ts$|site-agent\/src\/(apps\/app-preload|content\/server)\.ts$|^packages\/postgres\/src\/(server|migrate)\/|^packages\/process\/src\/(faultpoint|find-program|time-outs)\.ts$|^infra\/|\/prisma\.config\.ts$|worker-entry\.ts$/,
    ),
  },
  {
    reason: 'console belongs to commands; processes log through packages/service/src/telemetry/log.ts',
    pattern: /\bconsole\.(log|error|warn|info)\b/,
    allowedIn: at(/^infra\/|\/(cli|bootstrap|command|staff-command|write-[a-z-]+)\.ts$/),
  },
  {
    reason: 'a time limit is timeLimit(): joined with other signals, AbortSignal.timeout() may never abort',
    pattern: /\bAbortSignal\.timeout\(/,
    allowedIn: at(/^infra\/|^packages\/(cli|client|emulators|testing)\//),
  },
  {
    reason: 'a queue is opened in workflow alone',
    pattern: /\bnew (Queue|Worker)\(/,
    allowedIn: at(/^packages\/workflow\/|^packages\/(archive|postgres|process)\/|^infra\/bench\//),
  },
  {
    reason:
      'the states of workflows and of their steps are written in workflow-states.ts alone; elsewhere only when to dispatch one, and the purge of those that ended',
    pattern: stateWrite,
    allowedIn: at(/workflow\/src\/store\/(workflow-states|purge-workflows)\.ts$/),
  },
  {
    reason: 'left open: finish it or file it; what is skipped says in its title what it needs',
    pattern: /\b(TODO|FIXME|XXX)\b|\b(it|test|describe)\.(only\(|skip\((?!.*\(needs ))/,
    allowedIn: (file) => file.path.startsWith('packages/testing/'),
  },
  {
    reason: 'loosened types: say what it is instead',
    pattern: /\bas any\b|: any\b(?! \w)|@ts-(ignore|nocheck|expect-error)/,
    allowedIn: (file) => file.path.startsWith('packages/testing/'),
  },
];
