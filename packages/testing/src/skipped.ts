type Suite = (title: string, body: () => void) => void;

/** Returns `describe`, or a skipped `describe` whose title names what is missing. */
export const describeWith = (missing: string): Suite =>
  missing === '' ? describe : (title, body) => describe.skip(`${title} (needs ${missing})`, body);

/** Declares one skipped test. It stands for tests that cannot even be listed while something is missing. */
export const skipTests = (title: string, missing: string): void =>
  it.skip(`${title} (needs ${missing})`, () => undefined);
