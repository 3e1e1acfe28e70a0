package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
)

// errStyle means that lines can't be removed or inserted because the YAML text isn't in block style.
var errStyle = errors.New("not in block style")

// editText removes the lines of removed machines, and inserts lines for new machines and SKUs. The caller must check the result.
func editText(text []byte, root *yaml.Node, want layout.Layout) ([]byte, error) {
	list, skus := valueOf(root, "machine-list"), valueOf(root, "machine-sku")
	if list == nil || skus == nil || list.Kind != yaml.SequenceNode || skus.Kind != yaml.MappingNode ||
		list.Style&yaml.FlowStyle != 0 || skus.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 || len(skus.Content) == 0 {
		return nil, errStyle
	}
	t := &textEdit{lines: strings.SplitAfter(string(text), "\n")}
	if last := len(t.lines) - 1; t.lines[last] == "" {
		t.lines = t.lines[:last]
	} else {
		t.lines[last] += "\n"
	}
	if err := t.editMachines(list, want.MachineList); err != nil {
		return nil, err
	}
	if err := t.addSKUs(skus, want.MachineSKU); err != nil {
		return nil, err
	}
	return t.apply(), nil
}

// textEdit collects the lines to remove and to insert by line number, counted from 0.
type textEdit struct {
	lines  []string
	cut    map[int]bool
	insert map[int]string // before that line
}

func (t *textEdit) editMachines(list *yaml.Node, want []layout.Machine) error {
	t.cut, t.insert = map[int]bool{}, map[int]string{}
	indent := list.Column - 1
	have := map[string]bool{}
	end := 0
	for _, item := range list.Content {
		h := valueOf(item, "hostname")
		if h == nil || item.Kind != yaml.MappingNode {
			return errStyle
		}
		have[h.Value] = true
		first := item.Line - 1
		// The dash of a list item may be on a separate line above the mapping.
		for first > 0 && !strings.HasPrefix(strings.TrimLeft(t.lines[first], " "), "-") {
			first--
		}
		end = t.extent(first, indent)
		if slices.ContainsFunc(want, func(m layout.Machine) bool { return m.Hostname == h.Value }) {
			continue
		}
		for i := t.commentsAbove(first, indent); i < end; i++ {
			t.cut[i] = true
		}
	}
	var added []layout.Machine
	for _, m := range want {
		if !have[m.Hostname] {
			added = append(added, m)
		}
	}
	if len(added) == 0 {
		return nil
	}
	b, err := strictyaml.Encode(added, nil)
	t.insert[end] = indented(b, indent)
	return err
}

func (t *textEdit) addSKUs(skus *yaml.Node, want map[string]layout.SKU) error {
	added := map[string]layout.SKU{}
	for name, s := range want {
		if valueOf(skus, name) == nil {
			added[name] = s
		}
	}
	if len(added) == 0 {
		return nil
	}
	last := skus.Content[len(skus.Content)-2]
	indent := skus.Content[0].Column - 1
	b, err := strictyaml.Encode(added, nil)
	t.insert[t.extent(last.Line-1, indent)] = indented(b, indent)
	return err
}

// extent returns the number of the line after an entry that begins at the line first. The entry contains all following lines with more indentation,
// but no blank lines at its end.
func (t *textEdit) extent(first, indent int) int {
	end := first + 1
	for i := first + 1; i < len(t.lines); i++ {
		l := strings.TrimRight(t.lines[i], "\r\n ")
		if l == "" {
			continue
		}
		if len(l)-len(strings.TrimLeft(l, " ")) <= indent {
			break
		}
		end = i + 1
	}
	return end
}

// commentsAbove returns the number of the first line of the comment directly above an entry, or first if the entry has no comment.
func (t *textEdit) commentsAbove(first, indent int) int {
	for first > 0 {
		l := strings.TrimRight(t.lines[first-1], "\r\n")
		trimmed := strings.TrimLeft(l, " ")
		if !strings.HasPrefix(trimmed, "#") || len(l)-len(trimmed) < indent {
			break
		}
		first--
	}
	return first
}

func (t *textEdit) apply() []byte {
	var b bytes.Buffer
	for i, l := range t.lines {
		b.WriteString(t.insert[i])
		if !t.cut[i] {
			b.WriteString(l)
		}
	}
	b.WriteString(t.insert[len(t.lines)])
	return b.Bytes()
}

func indented(b []byte, n int) string {
	var out strings.Builder
	for _, l := range strings.SplitAfter(string(b), "\n") {
		if strings.TrimSpace(l) != "" {
			out.WriteString(strings.Repeat(" ", n))
		}
		out.WriteString(l)
	}
	return out.String()
}
