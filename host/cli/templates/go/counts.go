package main

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Counts is what a text consists of.
type Counts struct {
	Lines   int    `json:"lines"`
	Words   int    `json:"words"`
	Longest string `json:"longest,omitempty"`
}

// Count counts words of at least minLength characters.
func Count(text string, minLength int) (Counts, error) {
	if minLength < 1 {
		return Counts{}, errors.New("min-length is 0; the shortest word has 1 character")
	}
	var counts Counts
	if text != "" {
		counts.Lines = strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	}
	longest := 0
	for _, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		if length < minLength {
			continue
		}
		counts.Words++
		if length > longest {
			longest, counts.Longest = length, word
		}
	}
	return counts, nil
}
