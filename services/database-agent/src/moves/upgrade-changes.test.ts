import type { UpgradeComparison } from '@drydock/agent/database';
import type { UpgradeRecord } from '../on-disk/database-folder';
import { remembering } from './upgrade-changes';

const answer = (outcome: UpgradeComparison['outcome'], names: string[] = []): UpgradeComparison => ({
  outcome,
  tables: 1,
  names,
  recomputed: [],
  differed: [],
});

it('an undecided comparison names what an earlier one found to differ, until a comparison finds no difference', async () => {
  let record = { upgrade_id: 'u', differed: [] as string[] } as UpgradeRecord;
  const database = {
    requireUpgrade: () => record,
    saveUpgrade: async (change: Partial<UpgradeRecord>) => {
      record = { ...record, ...change };
    },
  };
  const compare = (compared: UpgradeComparison) => remembering(database, 'u', compared);
  expect(await compare(answer('undecided', ['a']))).toMatchObject({ outcome: 'undecided', differed: [] });
  await compare(answer('different', ['b']));
  expect(await compare(answer('undecided', ['a']))).toMatchObject({
    outcome: 'undecided',
    names: ['a'],
    differed: ['b'],
  });
  await compare(answer('equal'));
  expect(await compare(answer('undecided', ['a']))).toMatchObject({ differed: [] });
});
