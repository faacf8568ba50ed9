/** An identifier, whatever is in it. */
export const quoteName = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

/** A string literal that no sql_mode reads otherwise. */
export const quoteText = (text: string): string => (text === '' ? "''" : `CONVERT(X'${Buffer.from(text).toString('hex')}' USING utf8mb4)`);

/** A string literal where no expression may stand, as in CREATE USER. Session.open has pinned the sql_mode by which a backslash escapes. */
export const quoteLiteral = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;

export const quoteAccount = ({ user, host }: { user: string; host: string }): string => `${quoteLiteral(user)}@${quoteLiteral(host)}`;
