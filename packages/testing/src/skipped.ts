type Suite = (title: string, body: () => void) => void;

/** Returns `describe`, or a skipped one whose title names the missing thing. */
export const describeWith = (missing: string): Suite =>
  missing === '' ? describe : (title, body) => describe.skip(`${title} (needs ${missing})`, body);

/** Reports tests as skipped that cannot even be listed here. */
export const skipTests = (title: string, missing: string): void =>
  it.skip(`${title} (needs ${missing})`, () => undefined);
