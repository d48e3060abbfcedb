// Command template fills in a template with JSON data: the template is the last argument, the data is read from
// stdin, the text is written to stdout. It is an ordinary program; nothing in it knows of WebAssembly.
//
//	template [-html] [-lenient] TEMPLATE < data.json
//	template -check TEMPLATE
//
// A mistake in the template or the data ends it with 1 and one line on stderr that tells its place.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	html := flag.Bool("html", false, "escape what is filled in, each value for its place in an HTML page")
	lenient := flag.Bool("lenient", false, "leave out what the data lacks, instead of failing")
	check := flag.Bool("check", false, "only read the template, and print the fields that it wants as JSON")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), options{html: *html, lenient: *lenient}, *check); err != nil {
		// Every message of the packages begins with "template:", which is what the program is called too.
		fmt.Fprintln(os.Stderr, "template: "+strings.TrimPrefix(strings.TrimPrefix(err.Error(), "html/template:"), "template: "))
		os.Exit(1)
	}
}

func run(source string, chosen options, check bool) error {
	if check {
		return writeFields(os.Stdout, source)
	}
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	data, err := decode(raw)
	if err != nil {
		return err
	}
	return render(os.Stdout, source, data, chosen)
}
