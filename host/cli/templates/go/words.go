// A command-line program: text on standard input, JSON on standard output. toolcell.toml makes a tool of it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	minLength := flag.Int("min-length", 1, "leave out words with fewer characters")
	flag.Parse()
	if err := run(*minLength); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(minLength int) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	counts, err := Count(string(text), minLength)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(counts)
}
