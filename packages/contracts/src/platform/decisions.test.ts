import { readFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from '../endpoints';
import { problemCodesOf } from './endpoint';
import { type ProblemCode, problemCodes } from './problems';

const decisions = readFileSync(path.join(__dirname, '../../../../docs/spec/decisions.md'), 'utf8');
/** The ten operations of the specification, in the specification's order. */
const ten = [
  'createApiKey',
  'listApiKeys',
  'restoreSiteBackup',
  'restoreSiteVendorSnapshot',
  'restoreSiteOffsite',
  'restoreDeletedSite',
  'restartSiteApp',
  'rollBackComputeServer',
  'restoreCard',
  'upgradeDatabase',
];
/** Problems that decisions.md describes once, above its table of codes. */
const common = new Set<ProblemCode>([
  'unauthenticated',
  'permission_denied',
  'rate_limited',
  'invalid_request',
  'invalid_json',
  'invalid_content_type',
  'body_too_large',
  'idempotency_key_invalid',
  'idempotency_key_reused',
  'idempotency_in_flight',
  'dependency_unavailable',
  'overloaded',
  'internal_error',
]);

const codesIn = (text: string): ProblemCode[] => {
  const named = new Set([...text.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name));
  return problemCodes.filter((code) => named.has(code));
};

describe('the table of codes in docs/spec/decisions.md', () => {
  const table = decisions.slice(
    decisions.indexOf('### Codes'),
    decisions.indexOf('Every 403 for a missing permission'),
  );

  it.each(ten.map((id, index) => [index + 1, id] as const))(
    'lists in row %i exactly the codes that %s can answer',
    (number, id) => {
      const endpoint = endpoints.find((candidate) => candidate.id === id);
      const row = table.split('\n').find((line) => line.startsWith(`| ${number} |`));
      if (endpoint === undefined || row === undefined) throw new Error(`there is no ${id} or no row ${number}`);
      const own = new Set(problemCodesOf(endpoint).filter((code) => !common.has(code)));
      expect(codesIn(row)).toEqual(problemCodes.filter((code) => own.has(code)));
    },
  );
});
