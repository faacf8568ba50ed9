/**
 * A reporter for jest. With `-t` jest's own reporter prints every test that the pattern leaves out, which can be
 * hundreds. This reporter stands before it and hides these tests from it. The totals at the end still count them.
 */
module.exports = class OnlyAsked {
  constructor({ testNamePattern }) {
    this.isNamed = Boolean(testNamePattern);
  }
  onTestResult(_test, result) {
    if (this.isNamed) result.testResults = result.testResults.filter(({ status }) => status !== 'pending');
  }
};
