package main

import (
	"strings"
	"testing"
)

func rendered(source, data string, chosen options) (string, error) {
	value, err := decode([]byte(data))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = render(&out, source, value, chosen)
	return out.String(), err
}

func TestWhatATemplateGives(t *testing.T) {
	for _, row := range []struct{ source, data, wanted string }{
		{"Dear {{.name}},", `{"name":"Ada"}`, "Dear Ada,"},
		{"{{range .}}{{.}};{{end}}", `[1, 2.5, "x", true]`, "1;2.5;x;true;"},
		{"{{.big}}", `{"big": 9007199254740993}`, "9007199254740993"},
		{"{{if gt .n 3}}many{{else}}few{{end}}", `{"n": 4}`, "many"},
		{`{{.names | join ", "}}`, `{"names":["a","b"]}`, "a, b"},
		{`{{.name | upper | left 5}}|{{.n | right 4}}|`, `{"name":"ab","n":7}`, "AB   |   7|"},
		{`{{.a | default "none"}}`, `{"a":""}`, "none"},
		{`{{mul .price .count | fixed 2}}`, `{"price":1.5,"count":3}`, "4.50"},
		{`{{sum "price" .items}} {{div (sum .list) (len .list)}}`, `{"items":[{"price":1},{"price":2}],"list":[1,2]}`, "3 1.5"},
		{`{{range sortBy "age" .}}{{.name}} {{end}}`, `[{"name":"b","age":9},{"name":"a","age":10},{"name":"c","age":"?"}]`, "b a c "},
		{`{{json .}}`, `{"a":[1,null]}`, `{"a":[1,null]}`},
		{`{{indent 2 .}}`, `"x\ny"`, "  x\n  y"},
		{`{{"a-b" | split "-" | join "+"}}{{"x" | replace "x" "y"}}{{trim " z "}}{{lower "Q"}}{{add 1 1}}{{sub 1 2}}`, ``, "a+byzq2-1"},
	} {
		text, err := rendered(row.source, row.data, options{})
		if err != nil || text != row.wanted {
			t.Errorf("%s with %s: got %q and %v, wanted %q", row.source, row.data, text, err, row.wanted)
		}
	}
}

func TestWhatIsMissingFailsUnlessItMayBeMissing(t *testing.T) {
	_, err := rendered("a\n{{.nme}}", `{"name":"Ada"}`, options{})
	if err == nil || !strings.Contains(err.Error(), `line:2:`) || !strings.Contains(err.Error(), `"nme"`) {
		t.Errorf("the error names neither the line nor the key: %v", err)
	}
	for _, html := range []bool{false, true} {
		text, err := rendered("[{{.nme}}{{.none}}]", `{"none":null}`, options{lenient: true, html: html})
		if err != nil || text != "[]" {
			t.Errorf("HTML %v: got %q and %v", html, text, err)
		}
	}
}

func TestHTMLIsEscapedForItsPlace(t *testing.T) {
	source := `<a href="/?q={{.q}}">{{.q}}</a>`
	text, err := rendered(source, `{"q":"<b> & c"}`, options{html: true})
	wanted := `<a href="/?q=%3cb%3e%20%26%20c">&lt;b&gt; &amp; c</a>`
	if err != nil || text != wanted {
		t.Errorf("got %q and %v, wanted %q", text, err, wanted)
	}
}

func TestWrongDataAndTemplatesAreErrors(t *testing.T) {
	for _, row := range []struct{ source, data, part string }{
		{"{{.a", `{}`, "unclosed action"},
		{"x", `{"a":`, "not JSON"},
		{"x", `{} {}`, "more than one"},
		{"{{nosuch .}}", `{}`, "not defined"},
		{"{{div 1 0}}", `{}`, "division by zero"},
		{`{{join "," .}}`, `{"a":1}`, "wants a list"},
		{`{{sum "a" .}}`, `[{"a":"x"}]`, "item 0"},
	} {
		_, err := rendered(row.source, row.data, options{})
		if err == nil || !strings.Contains(err.Error(), row.part) {
			t.Errorf("%s with %s: %v does not say %q", row.source, row.data, err, row.part)
		}
	}
}

func TestTheFieldsOfATemplate(t *testing.T) {
	var out strings.Builder
	source := `{{.title}}{{range $i, $x := .items}}{{$x.price}}{{if .old}}{{.name.first | upper}}{{end}}{{end}}{{define "t"}}{{.y}}{{end}}`
	if err := writeFields(&out, source); err != nil {
		t.Fatal(err)
	}
	wanted := `{"fields":["$x.price",".items",".name.first",".old",".title",".y"]}` + "\n"
	if out.String() != wanted {
		t.Errorf("got %s, wanted %s", out.String(), wanted)
	}
}
