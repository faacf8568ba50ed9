/** The pattern of a quoted identifier. A program of a session with ANSI_QUOTES has the other quotes. */
export const quotedName = '(?:`(?:[^`]|``)*`|"(?:[^"]|"")*")';
/** The pattern of a text as the server writes it into a definition. */
export const quotedText = String.raw`'(?:[^'\\]|''|\\[\s\S])*'`;

/** Where a quote has no other one, as no server writes it, the rest is quoted: it is read once, however long it is. */
const quoted = `${quotedText}|${quotedName}|['"\`][\\s\\S]*`;

/** A pattern that finds this text and no other. */
export const exactly = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);

/**
 * Replaces what a pattern finds in a definition of a table, outside of texts and names: a comment may say the same words. `replace` is given the named groups of the pattern.
 */
export function replaceOutsideQuotes(
  definition: string,
  pattern: string,
  replace: (groups: Readonly<Record<string, string | undefined>>) => string,
): string {
  let replaced = '';
  let end = 0;
  for (const { 0: found, index, groups = {} } of definition.matchAll(new RegExp(`(?<quoted>${quoted})|${pattern}`, 'g'))) {
    if (groups['quoted'] !== undefined) continue;
    replaced += definition.slice(end, index) + replace(groups);
    end = index + found.length;
  }
  return replaced + definition.slice(end);
}
