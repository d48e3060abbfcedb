// A command-line program: `tool read NAME` and `tool write NAME`, whose text is standard input. toolcell.toml makes tools of it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// The folder that toolcell.toml mounts.
const notes = "/notes"

func main() {
	if err := run(notes, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string, arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) != 2 {
		return errors.New("usage: tool read NAME, or: tool write NAME < TEXT")
	}
	file, err := path(folder, arguments[1])
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "read":
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	case "write":
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%d bytes are written\n", len(text))
		return err
	}
	return fmt.Errorf("%q is neither read nor write", arguments[0])
}

// path is the note's file: never one of another folder.
func path(folder, name string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
		return "", fmt.Errorf("%q is not a name: 1 to 64 letters, digits, - and _", name)
	}
	return filepath.Join(folder, name+".txt"), nil
}
