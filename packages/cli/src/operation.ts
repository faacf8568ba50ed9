import fs from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type CommandPlan, dryRunFor, groups, operationIds, plans } from './commands';
import { UsageError } from './exit';
import { type OperationId, operations } from './generated/contract';
import { isObject } from './output';
import { readStdin } from './terminal';

/** A value of a call: a parameter, or a field of the body. generate.mjs reads it from the contract. */
export interface Field {
  place: 'path' | 'query' | 'body';
  /** The path to the value within its place, such as `['plan', 'daily_backups']`. */
  steps: readonly string[];
  type: string;
  required: boolean;
  isArray: boolean;
  isNullable: boolean;
  values?: readonly string[];
  standard?: unknown;
  description?: string;
}

/** An operation of the contract, as generate.mjs reads it. */
export interface Operation {
  method: string;
  path: string;
  summary: string;
  description: string;
  fields: readonly Field[];
  hasBody: boolean;
  takesKey: boolean;
  /** True if the operation answers 202 and a workflow does the work. */
  isLong: boolean;
  isStream: boolean;
  /** The field of the answer that holds the items of a page. */
  items?: string;
}

export interface Input {
  path: Record<string, string>;
  query: Record<string, unknown>;
  body?: unknown;
}

/**
 * The names of options that are not named like their field. The field `body` has the option `--text`, because `--body`
 * is the whole body.
 */
const shortNames: Readonly<Record<string, string>> = {
  assignee_id: 'assignee',
  backup_id: 'backup',
  body: 'text',
  column_id: 'column',
  copy_id: 'copy',
  item_id: 'item',
  label_ids: 'label',
  org_id: 'org',
  parent_id: 'parent',
  permissions: 'permission',
  primary_domain: 'domain',
  scopes: 'scope',
  ssh_keys: 'ssh-key',
};

/** Stands for null during parsing, because commander treats null as a missing value. */
const none = Symbol('null');

const isSecret = ({ steps }: Field): boolean => /secret|password/.test(steps.join());
/**
 * Tells whether the option takes no value. In a query, the contract describes a flag as the words `true` and `false`.
 */
const isFlag = ({ type, values }: Field): boolean => type === 'boolean' || values?.toSorted().join() === 'false,true';
const flagOf = (field: Field): string => {
  const name = field.steps.map((step) => (shortNames[step] ?? step).replaceAll('_', '-')).join('-');
  return isSecret(field) ? `${name}-file` : name;
};
const attributeOf = (flag: string): string => flag.replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());

/** Parses `90`, `90s`, `10m` or `2h` into milliseconds. */
export function parseDuration(text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,6})([smh]?)$/.exec(text) ?? [];
  if (digits === undefined) throw new InvalidArgumentError('Give seconds, or a number with s, m or h, such as 10m.');
  const seconds: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3_600 };
  return Number(digits) * (seconds[unit] ?? 1) * 1_000;
}

type Run = (id: OperationId, given: readonly string[], options: Record<string, unknown>) => Promise<void>;

/** Adds a command to `program` for each operation whose plan has a command. */
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

function addFields(command: Command, { fields, hasBody, takesKey }: Operation): void {
  for (const { steps, description } of fields.filter(({ place }) => place === 'path'))
    command.argument(`<${steps[0]}>`, description);
  for (const field of fields.filter(({ place }) => place !== 'path'))
    for (const option of optionsOf(field)) command.addOption(option);
  if (hasBody)
    command.option('--body <file>', 'the body as JSON, from a file or from stdin (-); other options go over it');
  if (takesKey)
    command.option('--idempotency-key <key>', 'a name of this call: it is carried out once, however often it is sent');
}

function optionsOf(field: Field): Option[] {
  const flag = flagOf(field);
  const text = [field.description ?? '', ...remarksOf(field), ...(isFlag(field) ? [`(--no-${flag} for false)`] : [])]
    .filter(Boolean)
    .join(' ');
  if (isFlag(field)) return [new Option(`--${flag}`, text), new Option(`--no-${flag}`).hideHelp()];
  if (isSecret(field)) return [new Option(`--${flag} <file>`, `${text} Read from a file, or from stdin (-).`)];
  const option = new Option(`--${flag} <${field.values === undefined ? field.type : 'value'}>`, text);
  if (field.values !== undefined && !field.isArray) return [option.choices([...field.values])];
  return [
    option.argParser<unknown>((word, before) => {
      const value = parseWord(field, word);
      return field.isArray ? [...(Array.isArray(before) ? before : []), value] : value;
    }),
  ];
}

function remarksOf(field: Field): string[] {
  const { required, isArray, isNullable, standard } = field;
  const hasDefault =
    standard !== undefined && standard !== null && standard !== '' && !Array.isArray(standard) && !isFlag(field);
  return [
    ...(required ? ['(required)'] : []),
    ...(isArray ? ['(may be given again)'] : []),
    ...(isNullable ? ['("null" for none)'] : []),
    ...(hasDefault ? [`(default: ${typeof standard === 'string' ? standard : JSON.stringify(standard)})`] : []),
  ];
}

function parseWord({ type, isNullable, values }: Field, word: string): unknown {
  if (isNullable && word === 'null') return none;
  if (values !== undefined && !values.includes(word))
    throw new InvalidArgumentError(`Allowed choices are ${values.join(', ')}.`);
  if (type !== 'integer' && type !== 'number') return word;
  const number = Number(word);
  const isFit = word.trim() !== '' && Number.isFinite(number) && (type === 'number' || Number.isSafeInteger(number));
  if (!isFit) throw new InvalidArgumentError(`It is no ${type === 'integer' ? 'whole number' : 'number'}.`);
  return number;
}

/**
 * Builds the operation's input from arguments and options. Throws a UsageError, for example if required options are
 * missing.
 */
export async function readInput(
  operation: Operation,
  given: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Promise<Input> {
  const { fields, hasBody } = operation;
  const bodyFile = options['body'];
  const body = typeof bodyFile === 'string' ? await readJson(bodyFile) : {};
  const input: Input = { path: {}, query: {} };
  fields
    .filter(({ place }) => place === 'path')
    .forEach(({ steps: [name = ''] }, at) => {
      const value = given[at] ?? '';
      // An empty value, `.` or `..` would turn the URL into that of another resource.
      if (['', '.', '..'].includes(value)) throw new UsageError(`"${value}" is no ${name}`);
      input.path[name] = value;
    });
  const missing: string[] = [];
  for (const field of fields.filter(({ place }) => place !== 'path')) {
    const flag = flagOf(field);
    const value = options[attributeOf(flag)];
    const [name = ''] = field.steps;
    if (value === undefined) {
      if (field.required && bodyFile === undefined) missing.push(`--${flag}`);
    } else if (field.place === 'query') {
      input.query[name] = value;
    } else {
      const own = isSecret(field) && typeof value === 'string' ? (await readText(value)).trim() : value;
      setAt(body, field.steps, own === none ? null : own);
    }
  }
  if (missing.length > 0) throw new UsageError(`Give ${missing.join(', ')}, or the whole body with --body`);
  return hasBody ? { ...input, body } : input;
}

function setAt(body: Record<string, unknown>, [step = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    body[step] = value;
    return;
  }
  const inner = isObject(body[step]) ? body[step] : {};
  body[step] = inner;
  setAt(inner, rest, value);
}

async function readText(file: string): Promise<string> {
  if (file === '-') return readStdin();
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function readJson(file: string): Promise<Record<string, unknown>> {
  const text = await readText(file);
  try {
    const body: unknown = JSON.parse(text);
    if (isObject(body)) return body;
  } catch {
    // Invalid JSON is refused below.
  }
  throw new UsageError(`${file === '-' ? 'stdin' : file} holds no JSON object`);
}
