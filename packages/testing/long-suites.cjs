const fs = require('node:fs');

/**
 * The suites that take long. `npm test` leaves them out; `npm run test:all` has them. Each shows in whole what shorter suites show in small: a README run line by line, each
 * death in a run of its own, generated content, faults one by one.
 */
const longSuites = [
  'infra/dev/src/e2e/first-hour.test.ts',
  'services/hosting/src/crash.test.ts',
  'services/databases/src/crash.test.ts',
  'services/hosting/src/offsite/offsite-crash.test.ts',
  'services/hosting/src/offsite/storage-faults.test.ts',
  'services/hosting/src/deleted-sites/deleted-crash.test.ts',
  'services/databases/src/restores/restore-crash.test.ts',
  'services/database-agent/src/switch-over.test.ts',
  'services/databases/src/upgrades/abandon-upgrade.test.ts',
  'services/databases/src/restored-database.test.ts',
  'services/hosting/src/restored-database.test.ts',
  'services/compute/src/restored-database.test.ts',
  'services/compute/src/crash.test.ts',
  'services/hosting/src/vendor-snapshots/vendor-crash.test.ts',
  'services/hosting/src/vendor-snapshots/vendor-faults.test.ts',
  'services/hosting/src/proofs/proofs-crash.test.ts',
  'services/hosting/src/sites/ssh-crash.test.ts',
  'services/hosting/src/app/app-crash.test.ts',
  'services/compute/src/proxmox-crash.test.ts',
  'infra/dev/src/e2e/secret-hunt.test.ts',
  'infra/dev/src/e2e/span-tree.test.ts',
  'infra/dev/src/e2e/older-moments.test.ts',
  'infra/dev/src/e2e/client.test.ts',
  'infra/dev/src/e2e/other-nodes.test.ts',
  'infra/dev/src/e2e/attacks.test.ts',
  'services/site-agent/src/sites/site-jobs.test.ts',
  'services/hosting/src/offsite/tampered-chain.test.ts',
  'packages/postgres/src/upgrade/hostile-schemas.test.ts',
  'services/compute/src/provider-faults.test.ts',
  'services/hosting/src/backups/any-content.test.ts',
  'services/hosting/src/backups/large-content.test.ts',
  'packages/postgres/src/load/hostile-load.test.ts',
  'services/hosting/src/providers/tree-fidelity.test.ts',
  'services/compute/src/providers/compute-provider.faults.contract.test.ts',
  'services/hosting/src/providers/hostile-storage.test.ts',
  'services/site-agent/src/releases/hostile-trees.test.ts',
  'services/site-agent/src/database/hostile-schemas.test.ts',
  'packages/postgres/src/upgrade/fidelity.test.ts',
  'packages/postgres/src/upgrade/schema-corpus.test.ts',
  'packages/postgres/src/load/odd-schemas.test.ts',
  'services/compute/src/proxmox-range.test.ts',
];

/**
 * What begins first, since a long suite that begins last is waited for alone. Whole stacks run beside each other, and not beside the crash suites, which wait for leases
 * and would take the neighbour's load for a worker that is gone. The rest goes by size.
 */
const order = [
  'e2e/first-hour.test.ts',
  'dev/src/start.test.ts',
  'e2e/secret-hunt.test.ts',
  'e2e/span-tree.test.ts',
  'e2e/older-moments.test.ts',
  'e2e/restore.test.ts',
  'e2e/attacks.test.ts',
  'e2e/client.test.ts',
  'conformance.test.ts',
  'workflow/src/runner/crash.test.ts',
  'load/transfer.test.ts',
  'database-agent/src/switch-over.test.ts',
  'services/databases/src/upgrades/',
  'workflow.test.ts',
  '.contract.test.ts',
];
const placeOf = (file) => {
  const place = order.findIndex((name) => file.includes(name));
  return place === -1 ? order.length : place;
};

/** jest's interface of a sequencer. A clean checkout has no timings of an earlier run, hence the list. */
module.exports = class LongestFirst {
  static longSuites = longSuites;
  sort(tests) {
    const known = tests.map((test) => ({ test, place: placeOf(test.path), size: fs.statSync(test.path).size }));
    return known.sort((left, right) => left.place - right.place || right.size - left.size).map(({ test }) => test);
  }
  shard(tests) {
    return tests;
  }
  allFailedTests(tests) {
    return tests;
  }
  cacheResults() {}
};
