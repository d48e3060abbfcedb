package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// What a template may call beside Go's own functions (len, index, slice, printf, eq, lt, and, or, not, …). The value
// that a pipe brings is the last argument: {{.names | join ", "}}.
var functions = map[string]any{
	"upper":   strings.ToUpper,
	"lower":   strings.ToLower,
	"trim":    strings.TrimSpace,
	"replace": func(old, new, text string) string { return strings.ReplaceAll(text, old, new) },
	"split":   func(separator, text string) []string { return strings.Split(text, separator) },
	"join":    join,
	"indent":  func(width int, text string) string { return indent(width, text) },
	"left":    func(width int, value any) string { return pad(width, value, false) },
	"right":   func(width int, value any) string { return pad(width, value, true) },
	"default": func(otherwise, value any) any { return orElse(otherwise, value) },
	"json":    asJSON,
	"add":     func(a, b any) (any, error) { return calculate(a, b, func(x, y float64) float64 { return x + y }) },
	"sub":     func(a, b any) (any, error) { return calculate(a, b, func(x, y float64) float64 { return x - y }) },
	"mul":     func(a, b any) (any, error) { return calculate(a, b, func(x, y float64) float64 { return x * y }) },
	"div":     divide,
	"fixed":   fixed,
	"sum":     sum,
	"sortBy":  sortBy,
}

const (
	widthMax = 1_000 // columns: more is a mistake, and memory
)

func join(separator string, list any) (string, error) {
	switch list := list.(type) {
	case []string:
		return strings.Join(list, separator), nil
	case []any:
		texts := make([]string, len(list))
		for i, member := range list {
			texts[i] = fmt.Sprint(member)
		}
		return strings.Join(texts, separator), nil
	}
	return "", fmt.Errorf("join wants a list, not %T", list)
}

func indent(width int, text string) string {
	margin := strings.Repeat(" ", min(max(width, 0), widthMax))
	return margin + strings.ReplaceAll(text, "\n", "\n"+margin)
}

// pad fills a value up to a width in characters; what is longer stays whole.
func pad(width int, value any, before bool) string {
	text := fmt.Sprint(value)
	fill := strings.Repeat(" ", max(0, min(width, widthMax)-len([]rune(text))))
	if before {
		return fill + text
	}
	return text + fill
}

func orElse(otherwise, value any) any {
	if value == nil || value == "" || value == int64(0) || value == float64(0) || value == false {
		return otherwise
	}
	return value
}

func asJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func number(value any) (float64, error) {
	switch value := value.(type) {
	case int:
		return float64(value), nil
	case int64:
		return float64(value), nil
	case float64:
		return value, nil
	}
	return 0, fmt.Errorf("%v is not a number", value)
}

// whole gives a whole result back as an integer, so that it compares with whole numbers of the data.
func whole(value float64) any {
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		return int64(value)
	}
	return value
}

func calculate(a, b any, with func(x, y float64) float64) (any, error) {
	x, err := number(a)
	if err != nil {
		return nil, err
	}
	y, err := number(b)
	if err != nil {
		return nil, err
	}
	return whole(with(x, y)), nil
}

func divide(a, b any) (any, error) {
	if y, err := number(b); err == nil && y == 0 {
		return nil, errors.New("division by zero")
	}
	return calculate(a, b, func(x, y float64) float64 { return x / y })
}

// fixed writes a number with so many decimals.
func fixed(decimals int, value any) (string, error) {
	x, err := number(value)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.*f", min(max(decimals, 0), 20), x), nil
}

// sum adds the numbers of a list, or the field of that name of the objects in it: sum "price" .items
func sum(arguments ...any) (any, error) {
	if len(arguments) == 0 || len(arguments) > 2 {
		return nil, errors.New(`sum wants a list, or a field's name and a list: sum "price" .items`)
	}
	list, ok := arguments[len(arguments)-1].([]any)
	if !ok {
		return nil, fmt.Errorf("sum wants a list, not %T", arguments[len(arguments)-1])
	}
	total := 0.0
	for i, member := range list {
		if len(arguments) == 2 {
			member = field(member, fmt.Sprint(arguments[0]))
		}
		x, err := number(member)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		total += x
	}
	return whole(total), nil
}

func field(object any, name string) any {
	if object, ok := object.(map[string]any); ok {
		return object[name]
	}
	return nil
}

// sortBy gives the objects of a list by the field of that name, smallest first; numbers come before texts.
func sortBy(name string, list []any) []any {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b any) int {
		x, xErr := number(field(a, name))
		y, yErr := number(field(b, name))
		switch {
		case xErr == nil && yErr == nil && x != y:
			if x < y {
				return -1
			}
			return 1
		case xErr == nil && yErr != nil:
			return -1
		case xErr != nil && yErr == nil:
			return 1
		case xErr != nil:
			return strings.Compare(fmt.Sprint(field(a, name)), fmt.Sprint(field(b, name)))
		}
		return 0
	})
	return sorted
}
