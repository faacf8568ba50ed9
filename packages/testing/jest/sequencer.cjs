const fs = require('node:fs');
const { readPragmas } = require('./pragmas.cjs');

/**
 * jest's interface of a sequencer. The long suites begin first, because the run would wait for a long one that begins
 * last. Suites with real processes count as long, and among them the larger file as the longer one, because a clean
 * checkout has no timings of earlier runs.
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
