import path from 'node:path';
import { parseSync } from '@swc/core';
import type { SourceFile } from './source-files';

interface Node {
  type: string;
  [member: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
const textOf = (node: unknown): string | undefined =>
  isNode(node) && (node.type === 'Identifier' || node.type === 'StringLiteral') ? String(node['value']) : undefined;

function* nodesIn(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodesIn(item);
  else if (typeof value === 'object' && value !== null) {
    if (isNode(value)) yield value;
    for (const member of Object.values(value)) yield* nodesIn(member);
  }
}

const nodesOf = (file: SourceFile): Node[] => [
  ...nodesIn(parseSync(file.text, { syntax: 'typescript', target: 'es2023' }).body),
];

interface Call {
  callee: string | undefined;
  args: unknown[];
}
const callsAmong = (nodes: Iterable<Node>): Call[] =>
  [...nodes].flatMap((node) =>
    node.type === 'CallExpression'
      ? [
          {
            callee: textOf(node['callee']),
            args: (node['arguments'] as { expression: unknown }[]).map(({ expression }) => expression),
          },
        ]
      : [],
  );

/** Maps each imported name to the file that it comes from, as a path from the repository's root, or to its package. */
function importsOf(file: SourceFile, nodes: readonly Node[]): Map<string, string> {
  const imports = new Map<string, string>();
  for (const node of nodes) {
    if (node.type !== 'ImportDeclaration') continue;
    const from = textOf(node['source']) ?? '';
    const home = from.startsWith('.') ? `${path.posix.join(path.posix.dirname(file.path), from)}.ts` : from;
    for (const specifier of node['specifiers'] as { local: unknown }[])
      imports.set(textOf(specifier.local) ?? '', home);
  }
  return imports;
}

/**
 * Returns the kind that a file passes to `defineWorkflow`. @throws unless the file has exactly one such call, with the
 * kind as a literal
 */
export function kindDefinedIn(file: SourceFile): string {
  const kinds = callsAmong(nodesOf(file)).flatMap(({ callee, args }) => {
    if (callee !== 'defineWorkflow' || !isNode(args[0])) return [];
    const members = args[0]['properties'] as { key?: unknown; value?: unknown }[];
    return members.flatMap(({ key, value }) => (textOf(key) === 'kind' ? [textOf(value)] : []));
  });
  const [kind] = kinds;
  if (kinds.length !== 1 || kind === undefined) throw new Error(`${file.path} defines ${kinds.length} workflows`);
  return kind;
}

/** Returns the files of the workflows in the list `workflows`, which a service registers at its worker. */
export function filesRegisteredIn(file: SourceFile): string[] {
  const nodes = nodesOf(file);
  const imports = importsOf(file, nodes);
  const lists = nodes.filter((node) => node.type === 'VariableDeclarator' && textOf(node['id']) === 'workflows');
  return lists.flatMap((list) =>
    ((list['init'] as Node)['elements'] as { expression: unknown }[]).map(
      ({ expression }) => imports.get(textOf(expression) ?? '') ?? '',
    ),
  );
}

/** The functions that crash a workflow. The number is the position of the workflow's definition among the arguments. */
const crashFunctions: Readonly<Record<string, number>> = { crashEveryStep: 0, crashEveryStepInWorld: 1 };

/**
 * Returns the kinds of workflow whose steps a suite crashes. A kind counts if its definition is passed to one of the
 * {@link crashFunctions}, directly or through a function of the suite. A kind that stands only in a title, a comment or
 * another call does not count.
 */
export function kindsCrashedIn(file: SourceFile, kindOf: (file: string) => string | undefined): string[] {
  const nodes = nodesOf(file);
  const imports = importsOf(file, nodes);
  const functions = nodes.flatMap((node) => {
    if (node.type !== 'VariableDeclarator' || !isNode(node['init']) || node['init'].type !== 'ArrowFunctionExpression')
      return [];
    return [
      {
        name: textOf(node['id']) ?? '',
        params: (node['init']['params'] as unknown[]).map(textOf),
        body: node['init']['body'],
      },
    ];
  });
  const valuesOf = (scope: Iterable<Node>, name: string): unknown[] =>
    [...scope].flatMap((node) =>
      node.type === 'VariableDeclarator' && textOf(node['id']) === name ? [node['init']] : [],
    );
  /** Returns the kinds that an expression can stand for. If it is a parameter of a function, returns the parameter. */
  const read = (expression: unknown, scope: readonly Node[]): { kind?: string; parameter?: string }[] => {
    if (!isNode(expression)) return [];
    if (expression.type === 'Identifier') {
      const name = textOf(expression) ?? '';
      const kind = kindOf(imports.get(name) ?? '');
      if (kind !== undefined) return [{ kind }];
      const values = valuesOf(scope, name);
      return values.length > 0 ? values.flatMap((value) => read(value, scope)) : [{ parameter: name }];
    }
    const [call] = callsAmong([expression]);
    if (call?.callee !== 'definitionOf') return [];
    const [, asked] = call.args;
    if (!isNode(asked)) return [];
    return asked.type === 'StringLiteral' ? [{ kind: textOf(asked) ?? '' }] : [{ parameter: textOf(asked) ?? '' }];
  };
  const crashedIn = (scope: readonly Node[]) =>
    callsAmong(scope).flatMap(({ callee = '', args }) => {
      const at = Object.hasOwn(crashFunctions, callee) && imports.has(callee) ? crashFunctions[callee] : undefined;
      return at === undefined ? [] : read(args[at], scope);
    });
  const direct = crashedIn(nodes).flatMap(({ kind }) => kind ?? []);
  const byFunction = functions.flatMap(({ name, params, body }) => {
    const positions = crashedIn([...nodesIn(body)]).flatMap(({ parameter }) =>
      parameter === undefined ? [] : [params.indexOf(parameter)],
    );
    const calls = callsAmong(nodes).filter(({ callee }) => callee === name);
    return positions.flatMap((position) => calls.flatMap(({ args }) => textOf(args[position]) ?? []));
  });
  return [...new Set([...direct, ...byFunction])];
}
