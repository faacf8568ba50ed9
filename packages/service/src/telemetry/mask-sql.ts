/**
 * The longest text of a statement that is shown. The shape of a statement is enough for a trace. Its literals are
 * customers' data, and sometimes passwords.
 */
const shownMax = 2_048;

/** Comments, strings in each of their forms (also unfinished ones), quoted names, and the end of a statement. */
const pieces = new RegExp(
  [
    /--[^\n]*/,
    /\/\*[\s\S]*?(?:\*\/|$)/,
    /\$([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[\s\S]*?(?:\$\1\$|$)/,
    /\be'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)/,
    /'(?:[^']|'')*(?:'|$)/,
    /"(?:[^"]|"")*(?:"|$)/,
    /;/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);

/**
 * Statements that read and write rows, or begin and end transactions. Their secrets are in parameters, so they are
 * shown without literals.
 */
const plainVerbs = new Set(
  [
    'select',
    'with',
    'insert',
    'update',
    'delete',
    'merge',
    'values',
    'table',
    'begin',
    'start',
    'commit',
    'rollback',
  ].concat([
    'savepoint',
    'release',
    'fetch',
    'close',
    'listen',
    'unlisten',
    'lock',
    'truncate',
    'analyze',
    'vacuum',
    'show',
    'discard',
  ]),
);
/**
 * The kinds of object that are shown after a verb. Of every other statement (`CREATE ROLE`, `ALTER SUBSCRIPTION`, `DO`)
 * only those words are shown.
 */
const objects = new Set(
  [
    'role',
    'user',
    'database',
    'schema',
    'table',
    'index',
    'view',
    'materialized',
    'sequence',
    'function',
    'procedure',
  ].concat([
    'extension',
    'publication',
    'subscription',
    'type',
    'domain',
    'trigger',
    'policy',
    'server',
    'system',
    'default',
    'event',
  ]),
);

function maskStatement(statement: string): string {
  const [, verb = '', object = ''] = /^[\s(]*([a-z]+)(?:\s+(?:or\s+replace\s+)?([a-z]+))?/i.exec(statement) ?? [];
  if (plainVerbs.has(verb.toLowerCase())) return statement.trim();
  return objects.has(object.toLowerCase()) ? `${verb} ${object}` : verb;
}

/** The text of one or more statements as a trace may show it. */
export function maskSql(text: string): string {
  const separator = '\u0000';
  const masked = text.replaceAll(separator, ' ').replace(pieces, (piece) => {
    if (piece === ';') return separator;
    if (piece.startsWith('"')) return piece;
    return piece.startsWith('--') || piece.startsWith('/*') ? ' ' : '?';
  });
  const statements = masked.split(separator).map(maskStatement);
  return statements
    .filter((statement) => statement !== '')
    .join('; ')
    .slice(0, shownMax);
}
