const fs = require('node:fs');
const { readPragmas } = require('./pragmas.cjs');

/**
 * jest's interface of a sequencer. A suite that begins last is waited for alone, so the long ones begin first: those with real processes, and of these the larger
 * file. A clean checkout has no timings of an earlier run to go by.
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
