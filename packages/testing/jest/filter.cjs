const { readPragmas } = require('./pragmas.cjs');

const tiersOf = { quick: ['gate'], all: ['gate', 'long'], chaos: ['gate', 'long', 'chaos'] };

/**
 * jest's interface of a filter: keeps the suites of the tiers that DRYDOCK_TESTS names. A suite that is named by hand
 * runs in any tier.
 */
module.exports = async (files) => {
  const wanted = tiersOf[process.env.DRYDOCK_TESTS] ?? tiersOf.chaos;
  return { filtered: files.filter((file) => wanted.includes(readPragmas(file).tier)) };
};
