"""What lists of numbers and texts come to. Knows nothing of tables and components."""

import math
import statistics
from collections import Counter

# How many of the most frequent texts, and of the outliers, are reported.
LISTED_MAX = 10

# How many interquartile ranges outside of the quartiles a number is an outlier.
OUTLIER_RANGES = 1.5


def spread(numbers: list[float]) -> dict[str, object]:
    """Where numbers lie, by the names of the record `numbers`."""
    lower, median, upper = quartiles(numbers)
    reach = OUTLIER_RANGES * (upper - lower)
    outliers = [number for number in numbers if not lower - reach <= number <= upper + reach]
    return {
        "count": len(numbers),
        "sum": math.fsum(numbers),
        "mean": statistics.fmean(numbers),
        "standard_deviation": statistics.stdev(numbers) if len(numbers) > 1 else None,
        "minimum": min(numbers),
        "lower_quartile": lower,
        "median": median,
        "upper_quartile": upper,
        "maximum": max(numbers),
        "outliers": sorted(outliers, key=lambda number: -abs(number - median))[:LISTED_MAX],
    }


def quartiles(numbers: list[float]) -> list[float]:
    """The three values that cut sorted numbers into quarters, interpolated between neighbours."""
    if len(numbers) == 1:
        return numbers * 3
    return statistics.quantiles(numbers, n=4, method="inclusive")


def measure(name: str, numbers: list[float]) -> float | None:
    """One figure for a group of numbers; the names are those of the enum `measure`, in capitals."""
    if name == "COUNT":
        return float(len(numbers))
    if not numbers:
        return None
    measures = {"SUM": math.fsum, "MEAN": statistics.fmean, "MEDIAN": statistics.median, "MINIMUM": min, "MAXIMUM": max}
    return measures[name](numbers)


def relation(pairs: list[tuple[float, float]]) -> tuple[float | None, float | None, float | None]:
    """Correlation, slope and intercept; nothing for what takes numbers that differ where they do not."""
    xs, ys = zip(*pairs)
    if len(set(xs)) == 1:
        return None, None, None
    slope, intercept = statistics.linear_regression(xs, ys)
    correlation = statistics.correlation(xs, ys) if len(set(ys)) > 1 else None
    return correlation, slope, intercept


def frequent(texts: list[str]) -> list[tuple[str, int]]:
    """The most frequent texts with how often they are there, equal ones in their order."""
    return Counter(texts).most_common(LISTED_MAX)
