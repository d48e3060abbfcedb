package main

import "testing"

func TestWordsAreCounted(t *testing.T) {
	for _, row := range []struct {
		text      string
		minLength int
		counts    Counts
	}{
		{"", 1, Counts{}},
		{"one two\nthree", 1, Counts{2, 3, "three"}},
		{"a bb cc\n", 2, Counts{1, 2, "bb"}},
	} {
		counts, err := Count(row.text, row.minLength)
		if err != nil || counts != row.counts {
			t.Errorf("%q: %v, %v, not %v", row.text, counts, err, row.counts)
		}
	}
	if _, err := Count("a", 0); err == nil {
		t.Error("a length of 0 is accepted")
	}
}
