import { inRepo } from '../dev-config';
import { defects, whyUnfit } from './defects';

it.each(defects.map((defect) => [defect.name, defect] as const))(
  '%s can still be planted, and suites of the gate look for it',
  (_name, defect) => {
    expect(whyUnfit(defect, inRepo('.'))).toBeNull();
  },
);

it('a defect that fits nowhere, and one that only a long suite looks for, are told', () => {
  const [first] = defects;
  if (first === undefined) throw new Error('there are no defects');
  expect(whyUnfit({ ...first, replace: 'workflow' }, inRepo('.'))).toMatch(/times; it takes exactly one$/);
  expect(whyUnfit({ ...first, suites: ['services/hosting/src/crash.test.ts'] }, inRepo('.'))).toMatch(
    /not of the gate/,
  );
  expect(whyUnfit({ ...first, suites: [] }, inRepo('.'))).toMatch(/no suite/);
});
