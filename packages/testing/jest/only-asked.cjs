/**
 * jest's interface of a reporter. With `-t` jest prints every test that the name leaves out, which can be hundreds.
 * This one hides them from the next reporter. The totals at the end still count them.
 */
module.exports = class OnlyAsked {
  constructor({ testNamePattern }) {
    this.isNamed = Boolean(testNamePattern);
  }
  onTestResult(_test, result) {
    if (this.isNamed) result.testResults = result.testResults.filter(({ status }) => status !== 'pending');
  }
};
