/** The width, in characters, that lines of docker-compose.yml should not exceed. */
const widthMax = 155;

/**
 * Returns the YAML that follows `key:`. `depth` is the number of levels above the value. A short value usually stays on
 * the line of its key. A longer list or map gets its own lines.
 */
export function yaml(value: unknown, depth: number): string {
  const line = flow(value);
  const isMerged = isMap(value) && '<<' in value && depth < 4 && !('test' in value);
  const isNested = depth === 1 && line.length > 110;
  if (!isMerged && !isNested && line.length + 2 * depth <= widthMax) return ` ${line}`;
  const indent = '  '.repeat(depth);
  if (Array.isArray(value)) return ` [${wrap(value.map(flow), indent)}]`;
  return isMap(value)
    ? Object.entries(value)
        .map(([key, each]) => `\n${indent}${key}:${yaml(each, depth + 1)}`)
        .join('')
    : ` ${line}`;
}

/** Breaks a list into lines of about `widthMax` characters. A part that is longer gets a line of its own. */
export function wrap(parts: readonly string[], indent: string): string {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last === undefined || last.length + part.length + 2 > widthMax) lines.push(`${indent}${part},`);
    else lines[lines.length - 1] = `${last} ${part},`;
  }
  return lines
    .map((line) => `\n${line}`)
    .join('')
    .replace(/,$/, '');
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (!isMap(value)) return typeof value === 'string' ? scalar(value) : String(value);
  const entries = Object.entries(value);
  return entries.length === 0 ? '{}' : `{ ${entries.map(([key, each]) => `${key}: ${flow(each)}`).join(', ')} }`;
}

/** Quotes a text that YAML would not read as a string, such as `no`. References to anchors, such as `*common`, stay. */
function scalar(text: string): string {
  if (/^(?:\*[a-z]+|\[\*.*\])$/.test(text)) return text;
  return /^[A-Za-z/.][\w./-]*$/.test(text) && !/^(?:yes|no|on|off|true|false|null|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
