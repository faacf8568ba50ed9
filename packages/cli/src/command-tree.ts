import { type Command, InvalidArgumentError, Option } from 'commander';
import { type CommandPlan, groups, plans } from './commands';
import { type OperationId, operations } from './generated/contract';
import { addFields } from './operation';
import { clean } from './output';

/** The ids of all operations, in the order in which the help lists their commands. */
export const operationIds = Object.keys(plans).filter((id): id is OperationId => Object.hasOwn(operations, id));

/** Returns the plan of an operation's command. A preflight belongs to the command of the operation that it previews. */
export function planOf(id: OperationId): CommandPlan {
  const plan = plans[id];
  return 'command' in plan ? plan : planOf(plan.dryRunOf);
}

export const commandOf = (id: OperationId): string => planOf(id).command;

/** Returns the operation that shows what operation `id` would do, without doing it. */
export const dryRunFor = (id: OperationId): OperationId | undefined =>
  operationIds.find((other) => {
    const plan = plans[other];
    return 'dryRunOf' in plan && plan.dryRunOf === id;
  });

/** Returns the command that follows the workflow at this path. */
export function watchOf(path: string): string {
  for (const id of operationIds.filter((id) => operations[id].isStream)) {
    const pattern = operations[id].path.replace(/\/events$/, '').replace(/\{\w+\}/g, '([^/?]+)');
    const found = new RegExp(`^${pattern}$`).exec(path);
    if (found !== null) return clean(`drydock ${commandOf(id)} ${found.slice(1).join(' ')}`);
  }
  return clean(`GET ${path}`);
}

/** Parses `90`, `90s`, `10m` or `2h` into milliseconds. */
export function parseDuration(text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,6})([smh]?)$/.exec(text) ?? [];
  if (digits === undefined) throw new InvalidArgumentError('Give seconds, or a number with s, m or h, such as 10m.');
  const seconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3_600 };
  return Number(digits) * (seconds[unit] ?? 1) * 1_000;
}

export type Run = (id: OperationId, given: readonly string[], options: Record<string, unknown>) => Promise<void>;

/** Adds the command of every operation of the contract to `program`. */
export function addOperations(program: Command, run: Run): void {
  const known = new Map<string, Command>([['', program]]);
  const groupOf = (words: readonly string[]): Command => {
    const name = words.join(' ');
    const found = known.get(name);
    if (found !== undefined) return found;
    const group = groupOf(words.slice(0, -1))
      .command(words.at(-1) ?? '')
      .description(groups[name] ?? '');
    known.set(name, group);
    return group;
  };
  for (const id of operationIds) {
    const plan = plans[id];
    if (!('command' in plan)) continue;
    const words = plan.command.split(' ');
    const own = { isDefault: plan.isDefault === true };
    addOperation(groupOf(words.slice(0, -1)).command(words.at(-1) ?? '', own), id, plan, run);
  }
}

function addOperation(command: Command, id: OperationId, { asks, follow }: CommandPlan, run: Run): void {
  const operation = operations[id];
  // The contract's summary of a stream tells a client how to read the stream. The help describes the command instead.
  const ofStream =
    id === 'watchEvents'
      ? 'Print each event as it comes, until Ctrl-C'
      : 'Print each state of a workflow until it has ended';
  const summary = operation.isStream ? ofStream : operation.summary;
  command.summary(summary).description(`${summary}.\n${operation.description}`);
  addFields(command, operation);
  if (operation.items !== undefined) command.option('--all', 'every page, not only the first');
  if (operation.isLong) {
    command.addOption(new Option('--wait', 'wait for its end; so it is on a terminal').conflicts('detach'));
    command.option('--detach', 'return when it is accepted; so it is where stdout is no terminal');
  }
  if (operation.isLong || operation.isStream || follow !== undefined) {
    const timeout = new Option(
      '--timeout <time>',
      'wait no longer than this, such as 90s or 10m; the work goes on',
    ).argParser(parseDuration);
    command.addOption(operation.isLong ? timeout.conflicts('detach') : timeout);
  }
  if (follow !== undefined)
    command.addOption(
      new Option('-f, --follow', 'print each as it comes, until Ctrl-C').conflicts(['all', 'limit', 'cursor']),
    );
  if (asks !== undefined) command.option('-y, --yes', 'do it without asking for the name');
  if (dryRunFor(id) !== undefined) command.option('--dry-run', 'say what it would do, and change nothing');
  command.action(() => run(id, command.args, command.optsWithGlobals()));
}
