/**
 * @tier long
 * @processes
 * @root long
 */
import { allUpgrades, describeUpgrades } from '../../test/engines';
import { followCases, upgradeCases } from '../../test/upgrade-cases';

describeUpgrades(allUpgrades, followCases);
describeUpgrades(allUpgrades, upgradeCases);
