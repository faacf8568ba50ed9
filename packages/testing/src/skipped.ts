type Suite = (title: string, body: () => void) => void;

/** `describe` when nothing is missing. Otherwise a skipped one, whose title says what is missing. */
export const describeWith = (missing: string): Suite =>
  missing === '' ? describe : (title, body) => describe.skip(`${title} (needs ${missing})`, body);

/** Reports tests that cannot even be listed here as skipped. */
export const skipTests = (title: string, missing: string): void =>
  it.skip(`${title} (needs ${missing})`, () => undefined);
