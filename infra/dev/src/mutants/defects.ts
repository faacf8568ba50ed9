import fs from 'node:fs';
import path from 'node:path';

/** A defect that at least one suite of `npm test` must find. */
export interface Defect {
  name: string;
  file: string;
  /** The text that `with` replaces. The text occurs in `file` exactly once. */
  replace: string;
  with: string;
  /** The suites of `npm test` that should fail with the defect. */
  suites: readonly string[];
}

export const defects: readonly Defect[] = [
  {
    name: 'fence-not-compared',
    file: 'packages/workflow/src/store/workflow-states.ts',
    replace: 'workflow.fence = $2::bigint AND',
    with: '$2::bigint IS NOT NULL AND',
    suites: ['packages/workflow/src/store/workflow-states.test.ts'],
  },
  {
    name: 'organisation-not-filtered',
    file: 'services/hosting/src/sites/site.store.ts',
    replace: 'where: { id: siteId, orgId: owner.orgId, mode: owner.mode }',
    with: 'where: { id: siteId, mode: owner.mode }',
    suites: ['services/hosting/src/sites/sites.test.ts'],
  },
  {
    name: 'undo-does-nothing',
    file: 'services/hosting/src/backups/restore-backup.workflow.ts',
    replace: 'undo: (step, context) => discardStaged(context, step, step.input.platform),',
    with: 'undo: () => Promise.resolve(),',
    suites: ['services/hosting/src/backups/undo-staged.test.ts'],
  },
  {
    name: 'rule-asked-once',
    file: 'services/hosting/src/backups/restore-backup.workflow.ts',
    replace: 'assertStillAllowed(refuseRestore({ site',
    with: 'void (refuseRestore({ site',
    suites: ['services/hosting/src/backups/asked-again.test.ts'],
  },
  {
    name: 'list-without-limit',
    file: 'services/keys/src/api-keys/api-key.store.ts',
    replace: 'ORDER BY l.key_id DESC LIMIT',
    with: 'ORDER BY l.key_id DESC OFFSET 0 *',
    suites: ['services/keys/src/api-keys/plans.test.ts'],
  },
  {
    name: 'cursor-not-bound',
    file: 'packages/service/src/http/paging.ts',
    replace: 'JSON.stringify([binding.list, binding.keyId, binding.filter, payload])',
    with: 'JSON.stringify([binding.list, binding.keyId, payload])',
    suites: ['packages/service/src/http/paging.test.ts'],
  },
  {
    name: 'answer-outside-the-transaction',
    file: 'packages/service/src/effects/perform.ts',
    replace: 'storeAnswer(kit.database.sql(tx), claim,',
    with: 'storeAnswer(kit.database.sql(), claim,',
    suites: ['packages/service/src/effects/answer-in-transaction.test.ts'],
  },
  {
    name: 'audit-entry-lost',
    file: 'packages/workflow/src/http/accept-workflow.ts',
    replace: '(action === null ? {} : { audit: ',
    with: "(action !== '' ? {} : { audit: ",
    suites: ['services/hosting/src/backups/backups.test.ts'],
  },
  {
    name: 'symlink-followed',
    file: 'packages/archive/src/read/check-tree.ts',
    replace: "if (entry.type === 'directory') this.open.push(this.directory(path));",
    with: "if (entry.type === 'directory' || entry.type === 'symlink') this.open.push(this.directory(path));",
    suites: ['packages/archive/src/read/hostile-archive.test.ts'],
  },
  {
    name: 'wrong-permission',
    file: 'packages/contracts/src/hosting/backups.ts',
    replace: "and the database stays as it is.',\n  permissions: ['hosting.backup.manage'],",
    with: "and the database stays as it is.',\n  permissions: ['sites.view'],",
    suites: ['services/hosting/src/backups/backups.test.ts'],
  },
];

/**
 * Returns why the defect cannot be planted below `root`, or why `npm test` would not run its suites. Returns null for a
 * usable defect.
 */
export function whyUnfit({ file, replace, suites }: Defect, root: string): string | null {
  const found = fs.readFileSync(path.join(root, file), 'utf8').split(replace).length - 1;
  if (found !== 1) return `${file} holds the text that is to be replaced ${found} times; it takes exactly one`;
  const { readPragmas } = require(path.join(root, 'packages/testing/jest/pragmas.cjs')) as {
    readPragmas(file: string): { tier: string };
  };
  for (const suite of suites) {
    if (!fs.existsSync(path.join(root, suite))) return `there is no ${suite}`;
    const { tier } = readPragmas(path.join(root, suite));
    if (tier !== 'gate') return `${suite} is not of the gate: it says @tier ${tier}`;
  }
  return suites.length === 0 ? 'no suite is named that should find it' : null;
}
