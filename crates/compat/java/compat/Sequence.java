package compat;

import java.util.List;

/** The rule that every ordered subscription keeps for one key. */
final class Sequence {
  private Sequence() {}

  /** Each delivery is the previous plus one, or goes back to an earlier message. */
  static void assertLegal(List<Integer> numbers, int first) {
    int expected = first;
    for (int position = 0; position < numbers.size(); position++) {
      int number = numbers.get(position);
      if (number > expected) {
        List<Integer> before = numbers.subList(Math.max(0, position - 5), position);
        throw new AssertionError(number + " came after " + before);
      }
      expected = number + 1;
    }
  }
}
