package strictyaml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

type item struct {
	HostIP string            `yaml:"hostip"`
	Port   int               `yaml:"port"`
	On     bool              `yaml:"on"`
	Ratio  float64           `yaml:"ratio"`
	Labels map[string]string `yaml:"labels"`
	Next   *item             `yaml:"next"`
}

type file struct {
	Name  string         `yaml:"name"`
	Items []item         `yaml:"items"`
	Any   map[string]any `yaml:"any"`
	Pair  item           `yaml:"pair"`
}

func (item) KeyHints() map[string]string { return map[string]string{"ip": `did you mean "hostip"?`} }

func decode(t *testing.T, text string) (file, Findings) {
	t.Helper()
	var f file
	_, findings := Decode("a.yaml", []byte(text), &f)
	return f, findings
}

func TestEveryMistakeOfFormIsOneFindingWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string // the finding's line, [rule] included
		remedy     string
	}{
		"unknown key":               {"name: x\nitems:\n  - hostpi: 1.2.3.4\n", `a.yaml:3:5: items[0].hostpi: there is no key "hostpi" here [yaml/unknown-key]`, `did you mean "hostip"?`},
		"unknown key with hint":     {"items:\n  - ip: 1.2.3.4\n", `a.yaml:2:5: items[0].ip: there is no key "ip" here [yaml/unknown-key]`, `did you mean "hostip"?`},
		"unknown key far from all":  {"zzzzzz: 1\n", `a.yaml:1:1: zzzzzz: there is no key "zzzzzz" here [yaml/unknown-key]`, "the keys here are any, items, name, pair"},
		"underscore for dash":       {"pair: {host_ip: x}\n", `a.yaml:1:8: pair.host_ip: there is no key "host_ip" here [yaml/unknown-key]`, `did you mean "hostip"?`},
		"repeated key":              {"name: x\nname: y\n", `a.yaml:2:1: name: the key is already set on line 1 [yaml/duplicate-key]`, "keep one of the two"},
		"repeated key in a map":     {"any:\n  a: 1\n  a: 2\n", `a.yaml:3:3: any.a: the key is already set on line 2 [yaml/duplicate-key]`, "keep one of the two"},
		"text for a number":         {"items:\n- port: ssh\n", `a.yaml:2:9: items[0].port: expected a whole number, found text [yaml/type]`, "write a whole number there"},
		"quoted number":             {"items:\n- port: \"22\"\n", `a.yaml:2:9: items[0].port: expected a whole number, found text [yaml/type]`, "remove the quotes, if that is what you meant"},
		"fraction for a number":     {"items:\n- port: 2.5\n", `a.yaml:2:9: items[0].port: expected a whole number, found a number [yaml/type]`, "write a whole number there"},
		"number out of range":       {"items:\n- port: 99999999999999999999\n", `a.yaml:2:9: items[0].port: the number is out of range [yaml/type]`, "write a number closer to zero"},
		"word for a boolean":        {"pair: {on: yep}\n", `a.yaml:1:12: pair.on: expected true or false, found text [yaml/type]`, "write true or false there"},
		"not a number":              {"pair: {ratio: .nan}\n", `a.yaml:1:15: pair.ratio: expected a number, found a number [yaml/type]`, "write a number there"},
		"text for a list":           {"items: 10.0.0.1\n", `a.yaml:1:8: items: expected a list, found text [yaml/type]`, `write each entry on a separate line that begins with "- "`},
		"list for text":             {"name: [a]\n", `a.yaml:1:7: name: expected text, found a list [yaml/type]`, "write text there"},
		"text for a map":            {"pair: x\n", `a.yaml:1:7: pair: expected a map, found text [yaml/type]`, `write its keys on the lines below, indented, each as "key: value"`},
		"a list at the top":         {"- a\n", `a.yaml:1:1: expected a map, found a list [yaml/type]`, `write its keys on the lines below, indented, each as "key: value"`},
		"an empty entry":            {"items:\n  -\n  - port: 1\n", `a.yaml:2:4: items[0]: the entry is empty [yaml/empty-entry]`, "remove it, or write its value"},
		"a map as key":              {"any:\n  ? {a: 1}\n  : 2\n", `a.yaml:2:5: any: a key must be text [yaml/key]`, ""},
		"a path with odd keys":      {"pair: {labels: {a.b/c: [1]}}\n", `a.yaml:1:24: pair.labels["a.b/c"]: expected text, found a list [yaml/type]`, "write text there"},
		"an unsupported tag":        {"name: !ruby/object x\n", `a.yaml:1:7: a tag (!...) that is not supported [yaml/tag]`, "put the value in single quotes if it begins with !; otherwise remove the tag"},
		"binary":                    {"name: !!binary aGk=\n", `a.yaml:1:7: a tag (!...) that is not supported [yaml/tag]`, "put the value in single quotes if it begins with !; otherwise remove the tag"},
		"an infinite number in any": {"any: {x: .inf}\n", `a.yaml:1:10: any.x: not a finite number [yaml/type]`, "write a finite number"},
		"a merge of text":           {"any:\n  <<: x\n", `a.yaml:2:7: any: << needs a map or a list of maps [yaml/merge]`, "write << : *name, where name is the anchor of a map"},
		"several documents":         {"name: x\n---\nname: y\n", `a.yaml:2:1: the file holds several documents [yaml/several-documents]`, "remove the line --- and everything after it"},
		"an empty file":             {"", `a.yaml:1:1: the file is empty [yaml/empty]`, "write its content again, or name another file"},
		"comments alone":            {"# hello\n", `a.yaml:1:1: the file is empty [yaml/empty]`, "write its content again, or name another file"},
		"null":                      {"~\n", `a.yaml:1:1: the file is empty [yaml/empty]`, "write its content again, or name another file"},
		"not UTF-8":                 {"name: x\nnam\xff: y\n", `a.yaml:2:4: the file is not text in UTF-8 [yaml/encoding]`, "save it as UTF-8; a file from Windows may be UTF-16"},
		"a port in octal":           {"items: [{hostip: a, port: 022}]", `a.yaml:1:27: items[0].port: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`, AmbiguousRemedy},
		"a port that isn't octal":   {"items: [{hostip: a, port: 089}]", `a.yaml:1:27: items[0].port: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`, AmbiguousRemedy},
		"a port with an underscore": {"items: [{hostip: a, port: 2_2}]", `a.yaml:1:27: items[0].port: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`, AmbiguousRemedy},
		"any number in octal":       {"any: {n: 0123}", `a.yaml:1:10: any.n: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`, AmbiguousRemedy},
		"UTF-16":                    {"n\x00a\x00", `a.yaml:1:2: the file is not text in UTF-8 [yaml/encoding]`, "save it as UTF-8; a file from Windows may be UTF-16"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := decode(t, c.text)
			require.Len(t, findings, 1)
			assert.Equal(t, c.want, findings[0].String())
			assert.Equal(t, c.remedy, findings[0].Remedy)
			assert.Equal(t, Error, findings[0].Severity)
			assert.Error(t, findings.Err())
		})
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"tab":            {"items:\n\t- port: 1\n", 2},
		"colon in value": {"name: a\nitems: b: c\n", 2},
		"unknown anchor": {"name: x\npair: *nobody\n", 0},
		"open quote":     {"name: 'abc\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := decode(t, c.text)
			require.Len(t, findings, 1)
			assert.Equal(t, "yaml/syntax", findings[0].Rule)
			assert.Positive(t, findings[0].Line)
			if c.line > 0 {
				assert.Equal(t, c.line, findings[0].Line)
			}
			assert.NotEmpty(t, findings[0].Remedy)
		})
	}
}

func TestDocumentsThatGrowAreRefusedQuickly(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n"
	}
	for name, text := range map[string]string{
		"billion laughs":     "any:\n  " + strings.ReplaceAll(bomb, "\n", "\n  "),
		"alias of itself":    "any: &x\n  y: *x\n",
		"merge of itself":    "any: &x\n  <<: *x\n",
		"brackets":           "any: " + strings.Repeat("[", 100_000),
		"maps":               "any: " + strings.Repeat("{a: ", 9_000) + strings.Repeat("}", 9_000),
		"lists":              "any: " + strings.Repeat("[a, ", 9_000) + strings.Repeat("]", 9_000),
		"dashes":             strings.Repeat("- ", 9_000) + "a",
		"indented":           indented(2_000),
		"question marks":     strings.Repeat("? ", 9_000),
		"brackets in quotes": "name: [" + strings.Repeat("'", 10_001),
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := decode(t, text)
			require.NotEmpty(t, findings)
			assert.Error(t, findings.Err())
		})
	}
}

func indented(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestValuesArriveAsTheyWereWritten(t *testing.T) {
	f, findings := decode(t, `
name: 0123
items:
  - {hostip: 10.0.0.1, port: 0x16, on: true, ratio: 2}
  - &two
    labels: {a: true, b: 1.10, c: 2020-01-01}
  - <<: *two
    port: 7
any: {n: 1, f: 1.5, t: 2020-01-01, l: [a, null], z: ~}
pair:
  next: {port: 3}
`)
	require.Empty(t, findings)
	assert.Equal(t, "0123", f.Name, "a number where text is wanted keeps its digits")
	assert.Equal(t, item{HostIP: "10.0.0.1", Port: 22, On: true, Ratio: 2}, f.Items[0])
	assert.Equal(t, map[string]string{"a": "true", "b": "1.10", "c": "2020-01-01"}, f.Items[1].Labels)
	assert.Equal(t, item{Port: 7, Labels: f.Items[1].Labels}, f.Items[2])
	assert.Equal(t, map[string]any{"n": 1, "f": 1.5, "t": "2020-01-01", "l": []any{"a", nil}, "z": nil}, f.Any)
	assert.Equal(t, 3, f.Pair.Next.Port)
}

func TestNullLeavesADefault(t *testing.T) {
	f := file{Name: "default"}
	_, findings := Decode("a.yaml", []byte("name:\nitems: []\n"), &f)
	require.Empty(t, findings)
	assert.Equal(t, "default", f.Name)
}

func TestPositionIsTheFieldOrItsNearestAncestor(t *testing.T) {
	doc, findings := Parse("a.yaml", []byte("items:\n  - port: 1\n  - <<: {on: true}\n    port: 2\n"))
	require.Empty(t, findings)
	for _, c := range []struct {
		path         Path
		line, column int
		exact        bool
	}{
		{Path{"items", 1, "port"}, 4, 11, true},
		{Path{"items", 1, "on"}, 3, 14, true},
		{Path{"items", 1, "hostip"}, 3, 5, false},
		{Path{"items", 9}, 2, 3, false},
		{Path{"nothing"}, 1, 1, false},
	} {
		line, column, exact := doc.Position(c.path)
		assert.Equal(t, []any{c.line, c.column, c.exact}, []any{line, column, exact}, c.path.String())
	}
	var none *Document
	line, _, _ := none.Position(Path{"x"})
	assert.Zero(t, line)
	assert.False(t, none.Has("x"))
}

func TestFindingsAreAnErrorWithAllOfThem(t *testing.T) {
	_, findings := decode(t, "nmae: 1\nitems: x\n")
	err := findings.Err()
	require.EqualError(t, err, "a.yaml has 2 problems\n"+
		"a.yaml:1:1: nmae: there is no key \"nmae\" here [yaml/unknown-key]\n  -> did you mean \"name\"?\n"+
		"a.yaml:2:8: items: expected a list, found text [yaml/type]\n  -> write each entry on a separate line that begins with \"- \"")
	assert.Equal(t, 1, findings.ExitCode())
	require.EqualError(t, findings[:1], "a.yaml:1:1: nmae: there is no key \"nmae\" here [yaml/unknown-key]\n  -> did you mean \"name\"?", "one needs no heading")
	elsewhere := findings[0]
	elsewhere.File = "b.yaml"
	assert.Regexp(t, "^the configuration has 3 problems\n", append(findings, elsewhere).Error())
	warnings := Findings{{File: "a", Severity: Warning, Message: "m", Rule: "r"}}
	assert.NoError(t, warnings.Err())
	assert.Equal(t, "a: warning: m [r]", warnings[0].String())
}

func TestAWrongSecretIsNotShown(t *testing.T) {
	var v struct {
		Password int `yaml:"password"`
	}
	for _, text := range []string{"hunter2", "*hunter2", "!hunter2 x", "!!hunter2 x", "&hunter2 x", "@hunter2", "`hunter2`", "%hunter2", "'hunter2", "\"hunter2\\q\"", "[hunter2", "hunter2: x: y", "{hunter2", "!h!hunter2 x"} {
		_, findings := Decode("a.yaml", []byte("password: "+text+"\n"), &v)
		require.NotEmpty(t, findings, text)
		assert.NotContains(t, findings.Error(), "hunter2")
	}
}

func TestEncodingKeepsAnyText(t *testing.T) {
	for _, text := range []string{"", " ", "\n", "a\nb", " lead", "trail ", "\ttab", `"'\#:`, "- x", "*a", "&a", "!t", "0123", "true", "null", "~", "é世界😀", "\u0085\u00a0\ufeff\u2028", "a: b # c", "{x}", "%", "@", "`", "|", ">", "\x01\x7f", "a\r\nb", "<<", "=", "1e3", "0x1F", "2020-01-01"} {
		b, err := Encode(struct {
			Name string `yaml:"name"`
		}{text}, nil)
		require.NoError(t, err)
		f, findings := decode(t, string(b))
		require.Empty(t, findings, "%q became %s", text, b)
		assert.Equal(t, text, f.Name, "written as %s", b)
	}
}

func TestCommentsStandAboveTheirFields(t *testing.T) {
	b, err := Encode(map[string]any{"a": map[string]any{"b": 1}}, Comments{"": "head\n\nmore", "a.b": "what b is"})
	require.NoError(t, err)
	assert.Equal(t, "# head\n#\n# more\n\na:\n  # what b is\n  b: 1\n", string(b))
}

// nodes returns the number of nodes below a node. An alias counts as one node.
func nodes(n *yaml.Node) int {
	all := 1
	for _, c := range n.Content {
		all += nodes(c)
	}
	return all
}

func FuzzMarksBoundTheNodes(f *testing.F) {
	for _, part := range []string{"a: b\n", "a:\n", "- a\n", "- - - a\n", "? a\n: b\n", "?\n", "- ? a\n", "- a: b\n", "-\tb\n", "-\r", "a\u2028", "- a\u0085", "&a b: *a\n", "- !!str\n", "---\n", "- 'a': \"b\"\n", "- {a: b}\n", "- [?]\n", "- [?,?]\n", "- {?,?}\n"} {
		f.Add(strings.Repeat(part, 20))
	}
	for _, part := range []string{"a,", "[],", "{},", "?,", "? a,", "a: b,", "\"a\":b,", "{a},", "{a,b},", ":,", "[a]: b,", "{a: b}: c,", "'a',", "{?},", "[:],", "[a: b],", "? : ,", "a:,", "::,"} {
		f.Add("[" + strings.Repeat(part, 20) + "]")
		f.Add("{" + strings.Repeat(part, 20) + "}")
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n yaml.Node
		if yaml.Unmarshal([]byte(text), &n) == nil {
			require.LessOrEqual(t, nodes(&n), 4*Marks([]byte(text))+4, "%q", text)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"name: x\n", "items:\n- {hostip: a, port: 1}\n", "any: &a [*a]\n", "<<: {name: x}\n", "? [a]\n: b\n", "pair: !!binary x", "a: |\n  b\n", "\xff", "---\n---\n", "any: {1: 2, ~: 3, 2020-01-01: x}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v file
		doc, findings := Decode("a.yaml", data, &v)
		require.NotNil(t, doc)
		for _, one := range findings {
			require.NotEmpty(t, one.Rule)
			require.NotEmpty(t, one.Message)
		}
		if len(findings) > 0 {
			return
		}
		_, err := Encode(v, nil)
		require.NoError(t, err)
	})
}

func FuzzEncodedTextSurvives(f *testing.F) {
	f.Add("p@ss\"w\\ord'#: \n\t")
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, ok := validText([]byte(text)); !ok {
			t.Skip()
		}
		b, err := Encode(file{Name: text}, nil)
		require.NoError(t, err)
		var v file
		_, findings := Decode("a.yaml", b, &v)
		require.Empty(t, findings, "%q became %s", text, b)
		require.Equal(t, text, v.Name)
	})
}

func TestOfMergesThatSetAKeyTheFirstWins(t *testing.T) {
	f, findings := decode(t, `
items:
  - &one {hostip: one, port: 1}
  - &two {hostip: two, port: 2, ratio: 2}
pair:
  <<: [*one, *two]
  hostip: own
any:
  <<: [*one, *two]
`)
	require.Empty(t, findings)
	assert.Equal(t, item{HostIP: "own", Port: 1, Ratio: 2}, f.Pair)
	assert.Equal(t, map[string]any{"hostip": "one", "port": 1, "ratio": 2}, f.Any)
}
