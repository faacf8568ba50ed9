const fs = require('node:fs');
const path = require('node:path');

/**
 * A reporter for jest. It appends a line of JSON to the file DRYDOCK_SUITE_LOG when a suite ends, so that a killed run
 * has recorded its results too.
 */
module.exports = class SuiteLog {
  onTestResult(test, result) {
    const named = (status) => result.testResults.filter((one) => one.status === status).map(({ fullName }) => fullName);
    const line = {
      file: path.relative(process.cwd(), test.path),
      seconds: Math.round((result.perfStats.end - result.perfStats.start) / 100) / 10,
      passed: named('passed').length,
      failed: named('failed'),
      // A suite that cannot be loaded has failed, although it has no failed test.
      error: result.testExecError ? String(result.testExecError.message ?? result.testExecError).slice(0, 500) : null,
      skipped: [...named('pending'), ...named('skipped'), ...named('todo')],
    };
    fs.appendFileSync(process.env.DRYDOCK_SUITE_LOG, `${JSON.stringify(line)}\n`);
  }
};
