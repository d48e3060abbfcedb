"""Counting. Knows nothing of components."""


def count(text: str, min_length: int) -> tuple[int, int, str | None]:
    """Lines, words of at least this many characters, and the longest of them, the first of several."""
    if min_length < 1:
        raise ValueError("min-length is 0; the shortest word has 1 character")
    words = [word for word in text.split() if len(word) >= min_length]
    return len(text.splitlines()), len(words), max(words, key=len, default=None)
