/**
 * @processes
 * @root
 */
import { describeEngines, gateEngine } from '../../test/engines';
import { durabilityCases } from '../../test/server-cases';

describeEngines([gateEngine], durabilityCases);
