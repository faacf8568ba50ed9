const fs = require('node:fs');
const { readPragmas } = require('./pragmas.cjs');

/**
 * A sequencer for jest. It starts the suites that take longest first, because the run would wait for a long suite that
 * starts last. A clean checkout has no timings of earlier runs. So suites with real processes count as the longest, and
 * otherwise a larger file counts as longer.
 */
module.exports = class LongestFirst {
  sort(tests) {
    const known = tests.map((test) => ({
      test,
      processes: readPragmas(test.path).processes,
      size: fs.statSync(test.path).size,
    }));
    return known
      .sort((left, right) => right.processes - left.processes || right.size - left.size)
      .map(({ test }) => test);
  }
  shard(tests) {
    return tests;
  }
  allFailedTests(tests) {
    return tests;
  }
  cacheResults() {}
};
