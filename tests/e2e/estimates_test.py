"""How far off estimates lie by chance, by the errors that they tell: what docs/reading-a-report.md says of few samples, and the yardstick
that other tests hold estimates against."""
import math
import random
import unittest

from estimates import MOST_DEVIATIONS, deviations

INTERVAL = 65536
TRIALS = 1500


def estimate_of(numbers, blocks):
    """(estimate, variance) of the number of so many blocks of 1 to 1000 bytes, as memlog estimates it."""
    estimate = variance = 0.0
    for _ in range(blocks):
        chance = 1 - math.exp(-numbers.randint(1, 1000) / INTERVAL)
        if numbers.random() < chance:
            estimate += 1 / chance
            variance += (1 / chance) * (1 / chance - 1)
    return estimate, variance


class Estimates(unittest.TestCase):
    def estimates(self, samples):
        """Of so many samples on average; those with a sample at all."""
        numbers = random.Random(samples)
        blocks = round(samples * INTERVAL / 500.5)
        all_of_them = [estimate_of(numbers, blocks) for _ in range(TRIALS)]
        return blocks, [(estimate, variance) for estimate, variance in all_of_them if variance > 0]

    def share_within_two(self, samples):
        blocks, estimates = self.estimates(samples)
        return sum(abs(estimate - blocks) <= 2 * variance**0.5 for estimate, variance in estimates) / TRIALS

    def test_few_samples_have_too_small_an_error(self):
        """docs/reading-a-report.md has these shares."""
        shares = [(samples, self.share_within_two(samples)) for samples in (3, 10, 30)]
        for (samples, share), (low, high) in zip(shares, ((0.73, 0.81), (0.83, 0.89), (0.87, 0.93))):
            self.assertTrue(low < share < high, shares)

    def test_the_yardstick_allows_for_it(self):
        blocks, estimates = self.estimates(9)
        self.assertGreater(max(abs(estimate - blocks) / variance**0.5 for estimate, variance in estimates), MOST_DEVIATIONS)
        self.assertLess(max(abs(deviations(estimate, variance, blocks)) for estimate, variance in estimates), MOST_DEVIATIONS)


if __name__ == "__main__":
    unittest.main()
