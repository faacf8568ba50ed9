const { readPragmas } = require('./pragmas.cjs');

const tiersOf = { quick: ['gate'], all: ['gate', 'long'], chaos: ['gate', 'long', 'chaos'] };

/**
 * A filter for jest (`--filter`). It keeps the suites of the tiers that DRYDOCK_TESTS names. Without DRYDOCK_TESTS it
 * keeps all suites, so that a suite that is named by hand runs whatever its tier is.
 */
module.exports = async (files) => {
  const wanted = tiersOf[process.env.DRYDOCK_TESTS] ?? tiersOf.chaos;
  return { filtered: files.filter((file) => wanted.includes(readPragmas(file).tier)) };
};
