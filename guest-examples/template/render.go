package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

type options struct {
	html    bool
	lenient bool
}

// What messages call the template, as in "page:3:12: …".
const name = "line"

// What Go's templates write for a value that is not there.
const noValue = "<no value>"

// render writes the filled-in template, whole or not at all.
func render(out io.Writer, source string, data any, chosen options) error {
	missing := "missingkey=error"
	if chosen.lenient {
		missing = "missingkey=default"
	}
	var text bytes.Buffer
	if err := execute(&text, source, data, missing, chosen.html); err != nil {
		return err
	}
	written := text.Bytes()
	if chosen.lenient {
		written = bytes.ReplaceAll(written, []byte(noValue), nil)
	}
	_, err := out.Write(written)
	return err
}

func execute(out io.Writer, source string, data any, missing string, html bool) error {
	if html {
		parsed, err := htmltemplate.New(name).Option(missing).Funcs(functions).Parse(source)
		if err != nil {
			return err
		}
		return parsed.Execute(out, data)
	}
	parsed, err := template.New(name).Option(missing).Funcs(functions).Parse(source)
	if err != nil {
		return err
	}
	return parsed.Execute(out, data)
}

// decode reads JSON. Whole numbers become int64 and others float64, so that both print as they were written.
func decode(raw []byte) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return nil, fmt.Errorf("the data is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the data is more than one JSON value")
	}
	return withNumbers(data), nil
}

func withNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		number, _ := value.Float64()
		return number
	case []any:
		for i, member := range value {
			value[i] = withNumbers(member)
		}
	case map[string]any:
		for key, member := range value {
			value[key] = withNumbers(member)
		}
	}
	return value
}

// writeFields prints {"fields": […]}: every path that the template reads, as it is written there.
func writeFields(out io.Writer, source string) error {
	parsed, err := template.New(name).Funcs(functions).Parse(source)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, part := range parsed.Templates() {
		if part.Tree != nil {
			collect(part.Tree.Root, found)
		}
	}
	fields := make([]string, 0, len(found))
	for field := range found {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	return json.NewEncoder(out).Encode(map[string][]string{"fields": fields})
}

func collect(node parse.Node, found map[string]bool) {
	branch := func(of parse.BranchNode) {
		collect(of.Pipe, found)
		collect(of.List, found)
		if of.ElseList != nil {
			collect(of.ElseList, found)
		}
	}
	switch node := node.(type) {
	case *parse.ListNode:
		for _, member := range node.Nodes {
			collect(member, found)
		}
	case *parse.ActionNode:
		collect(node.Pipe, found)
	case *parse.PipeNode:
		for _, command := range node.Cmds {
			for _, argument := range command.Args {
				collect(argument, found)
			}
		}
	case *parse.FieldNode:
		found["."+strings.Join(node.Ident, ".")] = true
	case *parse.VariableNode:
		if len(node.Ident) > 1 {
			found[strings.Join(node.Ident, ".")] = true
		}
	case *parse.IfNode:
		branch(node.BranchNode)
	case *parse.RangeNode:
		branch(node.BranchNode)
	case *parse.WithNode:
		branch(node.BranchNode)
	case *parse.TemplateNode:
		if node.Pipe != nil {
			collect(node.Pipe, found)
		}
	}
}
