const fs = require('node:fs');

/** The suites that take longest, longest first. A clean checkout has no timings of an earlier run, and a long suite that begins last is waited for alone. */
const longest = [
  'services/databases/src/runner/crash.test.ts',
  'infra/dev/src/e2e/first-hour.test.ts',
  'services/hosting/src/runner/crash.test.ts',
  'services/compute/src/runner/crash.test.ts',
  'services/compute/src/proxmox-runner/crash.test.ts',
  'infra/dev/src/start.test.ts',
  'infra/dev/src/e2e/secret-hunt.test.ts',
  'infra/dev/src/e2e/restore.test.ts',
  'infra/dev/src/e2e/attacks.test.ts',
  'conformance.test.ts',
  'packages/workflow/src/runner/crash.test.ts',
  'packages/postgres/src/load/transfer.test.ts',
  'services/database-agent/src/switch-over.test.ts',
  'services/databases/src/upgrades/',
  'workflow.test.ts',
  '.contract.test.ts',
  'runner/crash.test.ts',
];

const placeOf = (file) => {
  const place = longest.findIndex((name) => file.includes(name));
  return place === -1 ? longest.length : place;
};

/** jest's interface of a sequencer. */
module.exports = class LongestFirst {
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
