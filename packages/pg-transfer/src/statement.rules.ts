import type { Statement } from './split-statements';
import { TransferError } from './transfer-error';

/** Everything that pg_dump writes into a schema for objects that a database's owner may hold. Whatever is not here is refused. */
const createKinds =
  'SCHEMA|TYPE|DOMAIN|COLLATION|CONVERSION|AGGREGATE|OPERATOR|CAST|STATISTICS|(?:UNLOGGED )?SEQUENCE|(?:UNLOGGED )?TABLE|(?:UNIQUE )?INDEX|(?:CONSTRAINT )?TRIGGER|RULE|POLICY|(?:RECURSIVE )?VIEW|MATERIALIZED VIEW|TEXT SEARCH (?:CONFIGURATION|DICTIONARY)|FUNCTION|PROCEDURE';
const alterKinds =
  'TABLE|INDEX|SEQUENCE|VIEW|MATERIALIZED VIEW|TYPE|DOMAIN|FUNCTION|PROCEDURE|ROUTINE|AGGREGATE|OPERATOR|COLLATION|STATISTICS|TEXT SEARCH (?:CONFIGURATION|DICTIONARY)';
const commentKinds = `${alterKinds}|SCHEMA|COLUMN|CONSTRAINT|TRIGGER|RULE|POLICY|EXTENSION|CAST|CONVERSION`;

const allowed = [
  new RegExp(`^CREATE (?:OR REPLACE )?(?:${createKinds})\\b`, 'i'),
  new RegExp(`^ALTER (?:${alterKinds})\\b`, 'i'),
  new RegExp(`^COMMENT ON (?:${commentKinds})\\b`, 'i'),
  /^REFRESH MATERIALIZED VIEW\b/i,
];

/** Parts of otherwise allowed statements that reach for other roles or for the server's disks. */
const refusedParts = [
  /\bOWNER TO\b/i,
  /^ALTER .*\bSET TABLESPACE\b/i,
  /^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) .*\bSET (?:SESSION AUTHORIZATION|ROLE)\b/i,
];

/** Session settings that pg_dump writes. The loader's own session has them already, so they are checked and never executed. */
const settings =
  /^SET (?:statement_timeout|lock_timeout|idle_in_transaction_session_timeout|transaction_timeout|check_function_bodies|xmloption|client_min_messages|row_security|default_tablespace|default_with_oids|default_table_access_method) = ['\w]+$/i;
const fixedStatements = new Set([
  "SET client_encoding = 'UTF8'",
  'SET standard_conforming_strings = on',
  "SELECT pg_catalog.set_config('search_path', '', false)",
]);

const extensionForm = /^CREATE EXTENSION IF NOT EXISTS ("(?:[^"]|"")+"|[a-z0-9_]+) WITH SCHEMA (?:"(?:[^"]|"")+"|[a-z0-9_$]+)$/;

/** Name of the extension that the statement makes, or null when it makes none. */
export function extensionOf(statement: Statement): string | null {
  const name = extensionForm.exec(statement.outline)?.[1];
  if (name === undefined) return null;
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}

/** Leading comments belong to the text of a statement as it was split. */
const withoutComments = (text: string): string => text.replace(/^(?:--[^\n]*\n|\s)+/, '');

/**
 * May this statement of a dump be run as the owner of the database?
 * 'skip' for a setting that the session has already; throws `statement_refused` for whatever a schema does not need:
 * COPY, DO, roles, grants, other databases, languages, foreign servers, event triggers.
 */
export function judgeStatement(statement: Statement): 'run' | 'skip' {
  const { outline } = statement;
  if (settings.test(outline) || fixedStatements.has(withoutComments(statement.text))) return 'skip';
  const isAllowed = allowed.some((pattern) => pattern.test(outline)) || extensionOf(statement) !== null;
  if (isAllowed && !refusedParts.some((pattern) => pattern.test(outline))) return 'run';
  throw new TransferError('statement_refused', `not allowed in a dump: ${outline.slice(0, 120)}`);
}
