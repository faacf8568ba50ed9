type Suite = (title: string, body: () => void) => void;

/** `describe` where nothing is missing; where something is, a skipped one whose title says what. */
export const describeWith = (missing: string): Suite =>
  missing === '' ? describe : (title, body) => describe.skip(`${title} (needs ${missing})`, body);

/** Stands in the report for tests that cannot even be named here. */
export const skipTests = (title: string, missing: string): void => it.skip(`${title} (needs ${missing})`, () => undefined);
