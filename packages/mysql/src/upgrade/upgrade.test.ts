/**
 * @processes
 */
import { describeUpgrades, gateUpgrade } from '../../test/engines';
import { followCases } from '../../test/upgrade-cases';

describeUpgrades([gateUpgrade], followCases);
