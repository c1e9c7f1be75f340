package main

import "fmt"

// checkSequence is the rule that every ordered subscription keeps for one key: each delivery is the
// previous plus one, or goes back to an earlier message.
func checkSequence(numbers []int, first int) error {
	expected := first
	for position, number := range numbers {
		if number > expected {
			return fmt.Errorf("%d came after %v", number, numbers[max(0, position-5):position])
		}
		expected = number + 1
	}
	return nil
}
