"""The rule that every ordered subscription keeps for one key."""


def assert_legal(values, first=1):
    """Each delivery is the previous plus one, or goes back to an earlier message."""
    highest = previous = first - 1
    for position, value in enumerate(values):
        if value > previous + 1:
            raise AssertionError(
                f"{value} came after {previous}: {values[max(0, position - 5) : position + 1]}"
            )
        previous = value
        highest = max(highest, value)
    return highest
