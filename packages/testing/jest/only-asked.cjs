/**
 * jest's interface of a reporter. With `-t` jest prints every test that the name leaves out, hundreds for one operation's conformance; this takes them from what the
 * next reporter prints. The sum at the end counts them still.
 */
module.exports = class OnlyAsked {
  constructor({ testNamePattern }) {
    this.isNamed = Boolean(testNamePattern);
  }
  onTestResult(_test, result) {
    if (this.isNamed) result.testResults = result.testResults.filter(({ status }) => status !== 'pending');
  }
};
