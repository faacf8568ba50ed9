import type { Statement } from '../dump/split-statements';
import { TransferError } from '../session/transfer-error';

/** The kinds of objects that a dump may create: those that a database's owner can have. */
const createKinds =
  'SCHEMA|TYPE|DOMAIN|COLLATION|CONVERSION|AGGREGATE|OPERATOR|CAST|STATISTICS|(?:UNLOGGED )?SEQUENCE|' +
  '(?:UNLOGGED )?TABLE|(?:UNIQUE )?INDEX|(?:CONSTRAINT )?TRIGGER|RULE|POLICY|(?:RECURSIVE )?VIEW|' +
  'MATERIALIZED VIEW|TEXT SEARCH (?:CONFIGURATION|DICTIONARY)|FUNCTION|PROCEDURE|PUBLICATION';
const alterKinds =
  'TABLE|INDEX|SEQUENCE|VIEW|MATERIALIZED VIEW|TYPE|DOMAIN|FUNCTION|PROCEDURE|ROUTINE|AGGREGATE|OPERATOR|' +
  'COLLATION|STATISTICS|TEXT SEARCH (?:CONFIGURATION|DICTIONARY)|PUBLICATION';
const commentKinds = `${alterKinds}|SCHEMA|COLUMN|CONSTRAINT|TRIGGER|RULE|POLICY|EXTENSION|CAST|CONVERSION`;

const allowed = [
  new RegExp(`^CREATE (?:OR REPLACE )?(?:${createKinds})\\b`, 'i'),
  new RegExp(`^ALTER (?:${alterKinds})\\b`, 'i'),
  new RegExp(`^COMMENT ON (?:${commentKinds})\\b`, 'i'),
  /^REFRESH MATERIALIZED VIEW\b/i,
  // Only grants on objects match. A grant of a role has no ON.
  /^(?:GRANT|REVOKE) [A-Z, ]+ ON (?:TABLE|SEQUENCE|FUNCTION|PROCEDURE|ROUTINE|SCHEMA|TYPE|DOMAIN) /i,
  /^(?:GRANT|REVOKE) [A-Z]+\((?:[^()"]|"(?:[^"]|"")*")+\)(?:,[A-Z]+\((?:[^()"]|"(?:[^"]|"")*")+\))* ON TABLE /i,
  /^ALTER DEFAULT PRIVILEGES FOR ROLE /i,
];

/** Parts of statements that would reach other roles or the server's disks. */
const refusedParts = [
  /\bOWNER TO\b/i,
  /^ALTER .*\bSET TABLESPACE\b/i,
  /^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) .*\bSET (?:SESSION AUTHORIZATION|ROLE)\b/i,
  // Only a superuser can create the following, so no customer has them.
  /^CREATE (?:OR REPLACE )?FUNCTION .*\bLANGUAGE "?(?:c|internal)\b/i,
  /^CREATE (?:OR REPLACE )?FUNCTION .*(?<!NOT )\bLEAKPROOF\b/i,
  /^(?:CREATE|ALTER) OPERATOR (?:CLASS|FAMILY)\b/i,
  /^CREATE CAST .* WITHOUT FUNCTION\b/i,
];

/** Session settings of pg_dump. They are checked but not run, because the loader's session already has them. */
const settings = new RegExp(
  '^SET (?:statement_timeout|lock_timeout|idle_in_transaction_session_timeout|transaction_timeout|' +
    'check_function_bodies|xmloption|client_min_messages|row_security|default_tablespace|default_with_oids|' +
    String.raw`default_table_access_method) = ['\w]+$`,
  'i',
);
const fixedStatements = new Set([
  "SET client_encoding = 'UTF8'",
  'SET standard_conforming_strings = on',
  "SELECT pg_catalog.set_config('search_path', '', false)",
]);

/**
 * Matches the statements around a grant by a role other than the owner. In a dump without owners they are skipped, so
 * the object's owner makes the grant.
 */
const grantorChange =
  /^(?:SET SESSION AUTHORIZATION (?!DEFAULT)(?:"(?:[^"]|"")+"|[a-z0-9_$\u0080-\uffff]+)|RESET SESSION AUTHORIZATION)$/;

const extensionForm =
  /^CREATE EXTENSION IF NOT EXISTS ("(?:[^"]|"")+"|[a-z0-9_]+) WITH SCHEMA (?:"(?:[^"]|"")+"|[a-z0-9_$]+)$/;

/** Returns the extension that a statement creates, or null. */
export function extensionOf(statement: Pick<Statement, 'outline'>): string | null {
  const name = extensionForm.exec(statement.outline)?.[1];
  if (name === undefined) return null;
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}

const ownerForm = '("(?:[^"]|"")+"|[a-z0-9_$\\u0080-\\uffff]+)';
const publicForm = new RegExp(`^ALTER SCHEMA public OWNER TO ${ownerForm}$`);

/** Returns the owner that the statement gives the schema `public`, or null for another statement. */
export function publicOwnerOf({ outline }: { outline: string }): string | null {
  const owner = publicForm.exec(outline)?.[1];
  if (owner === undefined) return null;
  return owner.startsWith('"') ? owner.slice(1, -1).replaceAll('""', '"') : owner;
}

/** Tells whether a statement changes rights. A load runs such statements after their objects were created. */
export const isPrivilege = ({ outline }: Pick<Statement, 'outline'>): boolean =>
  /^(?:GRANT|REVOKE|ALTER DEFAULT PRIVILEGES) /i.test(outline);

export const isOnSchema = ({ outline }: Pick<Statement, 'outline'>): boolean =>
  /^(?:GRANT|REVOKE) [A-Z, ]+ ON SCHEMA /i.test(outline);

/**
 * Moves rights on schemas to the end, because an owner without a right on its schema could grant nothing on its
 * objects.
 */
export const schemasLast = <Privilege extends Pick<Statement, 'outline'>>(
  privileges: readonly Privilege[],
): Privilege[] => [...privileges.filter((privilege) => !isOnSchema(privilege)), ...privileges.filter(isOnSchema)];

export const isRefresh = ({ outline }: Pick<Statement, 'outline'>): boolean =>
  /^REFRESH MATERIALIZED VIEW /i.test(outline);

export const isPublication = ({ outline }: Pick<Statement, 'outline'>): boolean =>
  /^(?:CREATE|ALTER) PUBLICATION /i.test(outline);

/**
 * Returns the position of a statement: 0 for a schema, 1 for an extension, 2 for the rest. An extension's script runs
 * with more rights than the owner has, so only empty schemas come before it.
 */
export function orderOf(statement: Pick<Statement, 'outline'>): number {
  if (/^CREATE SCHEMA /i.test(statement.outline)) return 0;
  return extensionOf(statement) === null ? 2 : 1;
}

const quotable = '(?:"(?:[^"]|"")+"|[^\\s("]+)';
const qualified = `${quotable}(?:\\.${quotable})*`;
const addition = new RegExp(`^ALTER TABLE (?:ONLY )?(${qualified}) ADD CONSTRAINT (${quotable})`, 'i');
const onTable = new RegExp(
  `^CREATE (?:OR REPLACE )?(?:UNIQUE )?((?:CONSTRAINT )?TRIGGER|RULE|POLICY|INDEX) (${quotable}) ` +
    `.*?\\bON (?:ONLY )?(${qualified})`,
  'i',
);
const named = new RegExp(
  '^(?:CREATE|ALTER|COMMENT ON|REFRESH) (?:OR REPLACE )?(?:UNLOGGED )?(MATERIALIZED VIEW|RECURSIVE VIEW|TEXT ' +
    `SEARCH [A-Z]+|[A-Z]+) (?:IF NOT EXISTS |ONLY )?(${qualified})(?=[\\s(]|$)`,
  'i',
);

/** Describes the object of a statement for people, such as `index by_name of public.t`. */
export function describeStatement(outline: string): string {
  const added = addition.exec(outline);
  if (added) return `constraint ${added[2]} of table ${added[1]}`;
  const on = onTable.exec(outline);
  if (on) return `${(on[1] ?? '').toLowerCase()} ${on[2]} of ${on[3]}`;
  const match = named.exec(outline);
  return match ? `${(match[1] ?? '').toLowerCase()} ${match[2]}` : outline.slice(0, 120);
}

/** Removes leading comments, which the splitting leaves in a statement. */
const withoutComments = (text: string): string => text.replace(/^(?:--[^\n]*\n|\s)+/, '');

/**
 * Decides whether a statement may run with the rights of an owner. Returns 'skip' for a setting that the session
 * already has, and for a change of the grantor. Throws `statement_refused` for everything that a schema does not need:
 * COPY, DO, roles, other databases, languages, foreign servers, event triggers.
 */
export function checkStatement(statement: Statement): 'run' | 'skip' {
  const { outline } = statement;
  if (settings.test(outline) || grantorChange.test(outline) || fixedStatements.has(withoutComments(statement.text)))
    return 'skip';
  const isAllowed = allowed.some((pattern) => pattern.test(outline)) || extensionOf(statement) !== null;
  if (isAllowed && !refusedParts.some((pattern) => pattern.test(outline))) return 'run';
  const object = describeStatement(outline);
  throw new TransferError('statement_refused', `not allowed in a dump: ${outline.slice(0, 120)}`, { object });
}
