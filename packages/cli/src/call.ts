import { type Workflow, WorkflowError } from '@drydock/client';
import { type CommandPlan, commandOf, dryRunFor, planOf, watchOf } from './commands';
import { openSession, type Session } from './config';
import { exitCodeOf, exitCodeOfStatus, exitCodes, InterruptedError, messageOf, ShownError, UsageError } from './exit';
import { type OperationId, operations } from './generated/contract';
import { type Input, readInput } from './operation';
import { clean, type Format, isObject, print, printNext, recordOf, tableOf } from './output';
import { ask, canAsk, openProgress, tell } from './terminal';

/** A command's options as commander reads them. Most commands have only some of these options. */
export interface Options {
  [name: string]: unknown;
  output: Format;
  context?: string;
  yes?: boolean;
  dryRun?: boolean;
  follow?: boolean;
  all?: boolean;
  wait?: boolean;
  detach?: boolean;
  /** In milliseconds. */
  timeout?: number;
  idempotencyKey?: string;
}

/**
 * Runs the command of an operation: reads its input, asks the user if the plan says so, calls, and prints the answer.
 */
export async function runOperation(id: OperationId, given: readonly string[], options: Options): Promise<void> {
  const operation = operations[id];
  const plan = planOf(id);
  const input = await readInput(operation, given, options);
  if (plan.asks !== undefined && options.yes !== true && options.dryRun !== true && !canAsk())
    throw new UsageError(
      `${plan.command} asks before it acts, and there is nobody to ask. ` +
        'Give --yes to do it, or --dry-run where there is one to see what it would do',
    );
  const session = openSession(options.context);
  if (id === 'watchEvents' || options.follow === true) return watchEvents(session, input, options);
  if (operation.isStream) return watch(session, pathOf(operation.path, input), options);
  if (options.dryRun === true) return dryRun(session, id, input, options.output);
  if (plan.asks !== undefined && options.yes !== true) await confirm(session, id, plan.asks, input);
  const own = options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey };
  const answer = await session.call(id, input, own);
  if (operation.isLong) return follow(session, answer, plan, options);
  if (operation.items !== undefined) return printPage(session, id, input, answer, options);
  if (answer === undefined) return tell('Done.');
  await print(options.output, answer, (value) => recordOf(pick(value, plan.columns)));
}

const pathOf = (template: string, { path }: Input): string =>
  template.replace(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(path[name] ?? ''));

const pick = (value: unknown, columns: readonly string[] | undefined): unknown =>
  columns === undefined
    ? value
    : Object.fromEntries(
        columns.map((name) => [
          name,
          name.split('.').reduce<unknown>((node, step) => (isObject(node) ? node[step] : undefined), value),
        ]),
      );

async function printPage(
  session: Session,
  id: OperationId,
  input: Input,
  first: unknown,
  { output, all }: Options,
): Promise<void> {
  const { items: name = 'data' } = operations[id];
  const itemsOf = (page: unknown): unknown[] => (isObject(page) && Array.isArray(page[name]) ? page[name] : []);
  const cursorOf = (page: unknown): unknown =>
    isObject(page) && isObject(page['page']) ? page['page']['next_cursor'] : null;
  const items = itemsOf(first);
  let last = first;
  while (all === true && typeof cursorOf(last) === 'string') {
    last = await session.call(id, { ...input, query: { ...input.query, cursor: cursorOf(last) } });
    items.push(...itemsOf(last));
  }
  const whole = { ...(isObject(last) ? last : {}), [name]: items };
  const { columns = ['id'] } = planOf(id);
  await print(output, whole, () => tableOf(columns, items));
  const next = cursorOf(last);
  if (output === 'table' && typeof next === 'string') tell(`There are more: --all, or --cursor ${clean(next)}`);
}

function preflightLines(found: unknown): string[] {
  if (!isObject(found)) return [];
  const { would, resource, point, space, refusal, findings } = found;
  const bytes = (value: unknown): string =>
    typeof value === 'number' ? `${(value / 1e6).toFixed(1)} MB` : 'an unknown number of bytes';
  return [
    String(would),
    `  Of        ${String(resource)}`,
    ...(isObject(point) ? [`  Point     ${String(point['id'])}, the state of ${String(point['taken_at'])}`] : []),
    ...(isObject(space)
      ? [`  Space     needs ${bytes(space['needed_bytes'])}, has ${bytes(space['free_bytes'])}`]
      : []),
    ...(Array.isArray(findings) ? findings.filter(isObject).map(findingLine) : []),
    ...(isObject(refusal)
      ? [`  Refused   ${String(refusal['title'])}. ${String(refusal['detail'])} (${String(refusal['code'])})`]
      : []),
    '  Undo      none: no call takes it back',
  ].map(clean);
}
const findingLine = ({ level, code, detail }: Record<string, unknown>): string =>
  `  ${String(level).padEnd(8)}  ${String(detail)} (${String(code)})`;

function stopAtRefusal(preflight: unknown): void {
  if (isObject(preflight) && isObject(preflight['refusal']))
    throw new ShownError(exitCodeOfStatus(Number(preflight['refusal']['status'])));
}

async function dryRun(session: Session, id: OperationId, input: Input, format: Format): Promise<void> {
  const twin = dryRunFor(id);
  if (twin === undefined) throw new UsageError(`${commandOf(id)} has no --dry-run`);
  const preflight = await session.call(twin, input);
  await print(format, preflight, () => `${preflightLines(preflight).join('\n')}\n`);
  stopAtRefusal(preflight);
}

/** Shows what the call would do. Throws unless the user types the target's name. */
async function confirm(
  session: Session,
  id: OperationId,
  asks: NonNullable<CommandPlan['asks']>,
  input: Input,
): Promise<void> {
  const twin = dryRunFor(id);
  const last = Object.values(input.path).at(-1) ?? '';
  const target = asks === 'argument' ? { id: last } : await session.call(asks, { path: input.path, query: {} });
  const preflight = twin === undefined ? undefined : await session.call(twin, input);
  for (const line of preflight === undefined ? [`${clean(operations[id].summary)}.`] : preflightLines(preflight))
    tell(line);
  stopAtRefusal(preflight);
  const name = nameOf(target);
  if ((await ask(`Type ${name} to go on: `)) !== name)
    throw new UsageError('That is not its name, so nothing was done');
}

/**
 * Returns the name that the user must type. The domain of a site comes before its name, because two sites may have the
 * same name.
 */
function nameOf(target: unknown): string {
  const { primary_domain, label, name, id } = isObject(target) ? target : {};
  // A name of only invisible characters is skipped, because an empty line would confirm the call.
  const names = [primary_domain, label, name, id].map((one) => (typeof one === 'string' ? clean(one).trim() : ''));
  return names.find((one) => one !== '') ?? 'yes';
}

const stepOf = ({ steps }: Workflow): string => steps.find(({ status }) => status === 'running')?.name ?? '';
const progressOf = (workflow: Workflow): string =>
  `${workflow.kind}  ${workflow.progress} %  ${stepOf(workflow)}`.trimEnd();
const workflowColumns = ['id', 'kind', 'subject.type', 'subject.id', 'status', 'progress', 'created_at', 'finished_at'];

/**
 * Follows an accepted workflow. Waits for its end if `--wait` or `--timeout` is given, or if stdout is a terminal, but
 * never with `--detach`. Prints the result even if the wait fails, because the answer may contain a password that the
 * API shows only once.
 */
async function follow(session: Session, answer: unknown, plan: CommandPlan, options: Options): Promise<void> {
  const path = session.location();
  if (path === null) throw new Error('the answer names no workflow');
  const isWaiting =
    options.detach !== true &&
    (options.wait === true || options.timeout !== undefined || process.stdout.isTTY === true);
  const interrupted = new AbortController();
  const stop = (): void => interrupted.abort(new InterruptedError('interrupted; the work goes on'));
  process.on('SIGINT', stop);
  const progress = openProgress();
  let seen: Workflow | undefined;
  let failure: unknown;
  try {
    // With a time-out of 0 the client requests the workflow's state once and does not wait.
    const timeoutMs = isWaiting ? options.timeout : 0;
    await session.drydock.wait(path, {
      signal: interrupted.signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      onProgress: (workflow) => {
        seen = workflow;
        if (isWaiting) progress.show(progressOf(workflow));
      },
    });
  } catch (error) {
    failure = error;
  } finally {
    progress.end();
    process.off('SIGINT', stop);
  }
  const shown = plan.columns === undefined ? pick(seen, workflowColumns) : pick(answer, plan.columns);
  await print(options.output, { answer, workflow: seen ?? null }, () => recordOf(shown));
  if (failure === undefined) return tellEnd(seen);
  const code = exitCodeOf(failure);
  const isEnd = code === exitCodes.failed || code === exitCodes.interrupted;
  const isExpected = !isWaiting && (code === exitCodes.stillRunning || code === exitCodes.unavailable);
  if (!isExpected) process.stderr.write(messageOf(failure));
  if (code !== exitCodes.failed) tell(`It goes on. To follow it: ${watchOf(path)}`);
  // The operation was accepted. If only the request for its state is refused, the exit code must not be that of a
  // refusal, which says that nothing was done.
  if (isWaiting || isEnd) throw new ShownError(isRefusal(code) ? exitCodes.endUnknown : code);
}

const isRefusal = (code: number): boolean =>
  [exitCodes.notAllowed, exitCodes.notFound, exitCodes.refused, exitCodes.unavailable].some((each) => each === code);

function tellEnd(workflow: Workflow | undefined): void {
  if (workflow === undefined) return;
  tell(clean(`${workflow.kind} succeeded`));
  for (const finding of workflow.findings) tell(clean(findingLine({ ...finding })));
}

/**
 * Prints each state of a workflow until the workflow ends or the time-out is over. `events` is the path of its event
 * stream.
 */
async function watch(session: Session, events: string, { output, timeout }: Options): Promise<void> {
  const path = events.replace(/\/events$/, '');
  const signal = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  let last: Workflow | undefined;
  try {
    for await (const workflow of session.drydock.watch(path, signal === undefined ? {} : { signal })) {
      last = workflow;
      await printNext(output, workflow, () => clean(`${workflow.status}  ${progressOf(workflow)}`));
    }
  } catch (error) {
    if (signal?.aborted !== true || error !== signal.reason) throw error;
    tell(`drydock: it is not over; to follow it again: ${watchOf(path)}`);
    throw new ShownError(exitCodes.stillRunning);
  }
  if (last === undefined) return watchEnded(session, path, output);
  if (last.status === 'failed' || last.status === 'needs_attention') throw new WorkflowError(last);
}

/** Prints each event as it comes, until Ctrl-C or the time-out. */
async function watchEvents(session: Session, { query }: Input, { output, timeout }: Options): Promise<void> {
  const signal = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  try {
    for await (const event of session.drydock.events({ ...query, ...(signal === undefined ? {} : { signal }) })) {
      const { at, type, resource, workflow } = event;
      await printNext(output, event, () => clean(`${at}  ${type}  ${resource}  ${workflow?.kind ?? ''}`.trimEnd()));
    }
  } catch (error) {
    if (signal?.aborted !== true || error !== signal.reason) throw error;
  }
}

/**
 * Reports a workflow whose event stream had no event, because the workflow had already ended. Prints the workflow's
 * state if it has succeeded, and throws WorkflowError otherwise.
 */
async function watchEnded(session: Session, path: string, format: Format): Promise<void> {
  const workflow = await session.drydock.wait(path);
  await printNext(format, workflow, () => clean(`${workflow.status}  ${progressOf(workflow)}`));
}
