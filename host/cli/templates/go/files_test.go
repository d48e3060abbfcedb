package main

import (
	"strings"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	folder := t.TempDir()
	var out strings.Builder
	if err := run(folder, []string{"write", "tea"}, strings.NewReader("größe"), &out); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := run(folder, []string{"read", "tea"}, nil, &out); err != nil || out.String() != "größe" {
		t.Fatalf("%q, %v", out.String(), err)
	}
	refused := [][]string{
		{"read", "milk"}, {"read", "../tea"}, {"eat", "tea"}, {},
	}
	for _, arguments := range refused {
		if err := run(folder, arguments, nil, &out); err == nil {
			t.Errorf("%q is accepted", arguments)
		}
	}
}
