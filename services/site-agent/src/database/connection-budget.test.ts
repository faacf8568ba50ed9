import { ConnectionBudget } from './connection-budget';

/** A site that takes all places that it can get, and counts them. */
class Greedy {
  readonly places = new Set<() => void>();

  takeAll(budget: ConnectionBudget, siteId: string): number {
    for (;;) {
      let giveBack: (() => void) | null = null;
      const end = (): void => {
        if (giveBack === null) return;
        this.places.delete(giveBack);
        giveBack();
      };
      giveBack = budget.take(siteId, end);
      if (giveBack === null) return this.places.size;
      this.places.add(giveBack);
    }
  }
}

test('one site gets twenty places of a quiet cluster, and gets twenty again after it has given them back', () => {
  const budget = new ConnectionBudget(180);
  const site = new Greedy();
  expect(site.takeAll(budget, 'a')).toBe(20);
  for (const giveBack of [...site.places, ...site.places]) giveBack();
  expect(new Greedy().takeAll(budget, 'a')).toBe(20);
});

test.each([4, 10, 36, 100, 179])(
  'after %d sites have taken all they can, again and again, the next one gets its share',
  (count) => {
    const budget = new ConnectionBudget(180);
    const sites = Array.from({ length: count }, () => new Greedy());
    for (let round = 0; round < 3; round += 1)
      for (const [at, site] of sites.entries()) site.takeAll(budget, `greedy ${at}`);
    const next = new Greedy().takeAll(budget, 'next');
    expect(next).toBeGreaterThanOrEqual(Math.min(20, Math.floor(180 / (count + 1))));
    const held = sites.reduce((sum, { places }) => sum + places.size, next);
    expect(held).toBeLessThanOrEqual(180);
  },
);
