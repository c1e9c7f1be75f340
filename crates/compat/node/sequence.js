// The rule that every ordered subscription keeps for one key.
'use strict';

const assert = require('node:assert/strict');

/** Each delivery is the previous plus one, or goes back to an earlier message. */
function assertLegal(numbers, first) {
  let expected = first;
  numbers.forEach((number, position) => {
    const before = numbers.slice(Math.max(0, position - 5), position);
    assert.ok(number <= expected, `${number} came after ${before}`);
    expected = number + 1;
  });
}

module.exports = {assertLegal};
