/**
 * @tier long
 * @processes
 * @root long
 */
import { allEngines, describeEngines } from '../../test/engines';
import { durabilityCases, serverCases } from '../../test/server-cases';

describeEngines(allEngines, durabilityCases);
describeEngines(allEngines, serverCases);
