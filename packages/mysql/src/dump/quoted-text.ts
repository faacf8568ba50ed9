/** Matches a quoted identifier. A session with ANSI_QUOTES uses double quotes. */
export const quotedName = '(?:`(?:[^`]|``)*`|"(?:[^"]|"")*")';
/** Matches a text as the server writes it into a definition. */
export const quotedText = String.raw`'(?:[^'\\]|''|\\[\s\S])*'`;

/** An unclosed quote counts as quoted to the end, so that a long text is read only once. No server writes one. */
const quoted = `${quotedText}|${quotedName}|['"\`][\\s\\S]*`;

/** Returns a pattern that matches exactly this text. */
export const exactly = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);

/**
 * Replaces matches of a pattern in a table's definition, except in texts and names, because a comment may contain the
 * same words. `replace` gets the pattern's named groups.
 */
export function replaceOutsideQuotes(
  definition: string,
  pattern: string,
  replace: (groups: Readonly<Record<string, string | undefined>>) => string,
): string {
  let replaced = '';
  let end = 0;
  for (const { 0: found, index, groups = {} } of definition.matchAll(
    new RegExp(`(?<quoted>${quoted})|${pattern}`, 'g'),
  )) {
    if (groups['quoted'] !== undefined) continue;
    replaced += definition.slice(end, index) + replace(groups);
    end = index + found.length;
  }
  return replaced + definition.slice(end);
}
