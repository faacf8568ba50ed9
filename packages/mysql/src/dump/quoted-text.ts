/** The pattern of a quoted identifier. A program from a session with ANSI_QUOTES has double quotes. */
export const quotedName = '(?:`(?:[^`]|``)*`|"(?:[^"]|"")*")';
/** The pattern of a text, as the server writes it into a definition. */
export const quotedText = String.raw`'(?:[^'\\]|''|\\[\s\S])*'`;

/**
 * When a quote has no closing one, which no server writes, the whole rest counts as quoted. So the text is read only
 * once, however long it is.
 */
const quoted = `${quotedText}|${quotedName}|['"\`][\\s\\S]*`;

/** A pattern that matches exactly this text. */
export const exactly = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);

/**
 * Replaces what a pattern finds in the definition of a table, but not inside texts and names: a comment may contain the
 * same words. `replace` gets the named groups of the pattern.
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
