/**
 * A reporter for Jest. With `-t` Jest's own reporter prints every test that the pattern leaves out, which can be
 * hundreds. This reporter comes before Jest's own reporter and removes these tests from the result. The totals at the
 * end still count them.
 */
module.exports = class OnlyAsked {
  constructor({ testNamePattern }) {
    this.isNamed = Boolean(testNamePattern);
  }
  onTestResult(_test, result) {
    if (this.isNamed) result.testResults = result.testResults.filter(({ status }) => status !== 'pending');
  }
};
