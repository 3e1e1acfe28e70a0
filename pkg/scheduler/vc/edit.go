package vc

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// Keys of the virtual clusters in services-configuration.yaml.
const (
	keyScheduler       = "scheduler"
	keyVirtualClusters = "virtualClusters"
)

const remedyEdit = "get the files with: paictl config pull -o DIR; edit services-configuration.yaml there; then: paictl config push -p DIR, and: paictl service start -n scheduler"

// Edit returns the text of services-configuration.yaml with changed virtual clusters. A nil definition removes the virtual
// cluster. Edit rewrites only the lines of changed virtual clusters. All other bytes stay the same. Edit parses its result to
// check that it contains the requested changes.
func Edit(text []byte, changes map[string]*Definition) ([]byte, error) {
	// This also rejects a text that would take the parser below hours.
	if _, found := strictyaml.Parse("services-configuration.yaml", text); found.Err() != nil {
		return nil, hint.Wrap(found.Err(), remedyEdit)
	}
	out := text
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		next, err := editOne(out, name, changes[name])
		if err == nil {
			err = verify(out, next, name, changes[name])
		}
		if err != nil {
			return nil, hint.Wrap(fmt.Errorf("write the virtual cluster %s into services-configuration.yaml: %w", name, err), remedyEdit)
		}
		out = next
	}
	return out, nil
}

func editOne(text []byte, name string, d *Definition) ([]byte, error) {
	root, err := rootOf(text)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r\u0085\u2028\u2029") {
		return nil, errors.New("it has line breaks of an unusual kind")
	}
	l := &lines{all: strings.SplitAfter(string(text), "\n")}
	top := child(root, keyScheduler)
	all := child(valueOf(top), keyVirtualClusters)
	one := child(valueOf(all), name)
	switch {
	case d == nil && one == nil:
		return text, nil
	case d == nil && len(all.value.Content) > 2 && block(all.value):
		return l.remove(one), nil
	case d == nil:
		return l.replace(l.owner(root, top, all), removed(all.value, name), root, top, all)
	}
	value, err := d.node(valueOf(one))
	if err != nil {
		return nil, err
	}
	switch {
	case one != nil && block(all.value) && block(top.value):
		return l.write(one, value)
	case all != nil && block(all.value) && block(top.value) && len(all.value.Content) > 0:
		return l.insertAfter(lastEntry(all.value), name, value)
	}
	return l.replace(l.owner(root, top, all), with(valueOf(all), name, value), root, top, all)
}

// verify parses both texts. They must be equal except for the named virtual cluster, which must equal d in the new text.
func verify(before, after []byte, name string, d *Definition) error {
	var was, is map[string]any
	if err := yaml.Unmarshal(before, &was); err != nil {
		return err
	}
	if err := yaml.Unmarshal(after, &is); err != nil {
		return fmt.Errorf("the changed file is not readable: %w", err)
	}
	got, err := Read(after)
	if err != nil {
		return err
	}
	have, there := got[name]
	if d == nil && there || d != nil && (!there || !same(have, *d)) {
		return errors.New("paictl can't edit its YAML style")
	}
	if !reflect.DeepEqual(without(was, name), without(is, name)) {
		return errors.New("it can't be changed without changing something else")
	}
	return nil
}

func same(a, b Definition) bool {
	x, err1 := yaml.Marshal(a)
	y, err2 := yaml.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// without returns a file without one virtual cluster. It also removes sections that become empty.
func without(file map[string]any, name string) map[string]any {
	out := maps.Clone(file)
	section, ok := out[keyScheduler].(map[string]any)
	if !ok {
		if out[keyScheduler] == nil {
			delete(out, keyScheduler)
		}
		return out
	}
	section = maps.Clone(section)
	if all, ok := section[keyVirtualClusters].(map[string]any); ok {
		all = maps.Clone(all)
		delete(all, name)
		section[keyVirtualClusters] = all
		if len(all) == 0 {
			delete(section, keyVirtualClusters)
		}
	} else if section[keyVirtualClusters] == nil {
		delete(section, keyVirtualClusters)
	}
	out[keyScheduler] = section
	if len(section) == 0 {
		delete(out, keyScheduler)
	}
	return out
}

func rootOf(text []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // yaml.v3 panics on some inputs
			err = fmt.Errorf("not readable as YAML: %v", r)
		}
	}()
	var top yaml.Node
	if err := yaml.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	if len(top.Content) != 1 || top.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the file is not a map of settings")
	}
	return top.Content[0], nil
}

type entry struct{ key, value *yaml.Node }

func child(n *yaml.Node, key string) *entry {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return &entry{n.Content[i], n.Content[i+1]}
		}
	}
	return nil
}

func valueOf(e *entry) *yaml.Node {
	if e == nil {
		return nil
	}
	return e.value
}

func lastEntry(n *yaml.Node) *entry {
	i := len(n.Content) - 2
	return &entry{n.Content[i], n.Content[i+1]}
}

func block(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0
}

// node returns a YAML node with the definition. have is the file's node for the virtual cluster, or nil. If have isn't nil,
// node updates have, which keeps comments and style.
func (d *Definition) node(have *yaml.Node) (*yaml.Node, error) {
	fresh, err := strictyaml.Node(d)
	if err != nil {
		return nil, err
	}
	flowItems(fresh)
	if have == nil || have.Kind != yaml.MappingNode {
		return fresh, nil
	}
	overlay(have, fresh)
	return have, nil
}

func flowItems(n *yaml.Node) {
	for _, key := range []string{"virtualCells", "pinnedCells"} {
		if e := child(n, key); e != nil {
			for _, item := range e.value.Content {
				item.Style = yaml.FlowStyle
			}
		}
	}
}

// overlay makes have equal to want, but keeps the equal parts of have.
func overlay(have, want *yaml.Node) {
	if have.Kind != want.Kind || have.Kind == yaml.AliasNode {
		comment := have.LineComment
		*have = *want
		have.LineComment = comment
		return
	}
	switch have.Kind {
	case yaml.ScalarNode:
		if have.Value != want.Value {
			have.Value, have.Tag, have.Style = want.Value, want.Tag, want.Style
		}
	case yaml.SequenceNode:
		overlayList(have, want)
	case yaml.MappingNode:
		var kept []*yaml.Node
		for i := 0; i+1 < len(have.Content); i += 2 {
			if e := child(want, have.Content[i].Value); e != nil {
				overlay(have.Content[i+1], e.value)
				kept = append(kept, have.Content[i], have.Content[i+1])
			}
		}
		for i := 0; i+1 < len(want.Content); i += 2 {
			if child(have, want.Content[i].Value) == nil {
				kept = append(kept, want.Content[i], want.Content[i+1])
			}
		}
		have.Content = kept
	}
}

// overlayList works like overlay for a list. It matches items by their first key, which is the type or the name of a cell.
func overlayList(have, want *yaml.Node) {
	var out []*yaml.Node
	for _, item := range want.Content {
		at := slices.IndexFunc(have.Content, func(old *yaml.Node) bool { return identity(old) == identity(item) })
		if at < 0 {
			out = append(out, item)
			continue
		}
		overlay(have.Content[at], item)
		out = append(out, have.Content[at])
	}
	if len(have.Content) == 0 {
		have.Style = want.Style
	}
	have.Content = out
}

func identity(n *yaml.Node) string {
	for _, key := range []string{"cellType", "pinnedCellId"} {
		if e := child(n, key); e != nil {
			return e.value.Value
		}
	}
	return n.Value
}

// with returns a copy of a map of virtual clusters with one virtual cluster added or replaced.
func with(all *yaml.Node, name string, value *yaml.Node) *yaml.Node {
	if all == nil || all.Kind != yaml.MappingNode {
		all = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if len(all.Content) == 0 {
		all.Style = 0
	}
	if e := child(all, name); e != nil {
		if e.value != value {
			*e.value = *value
		}
		return all
	}
	key := &yaml.Node{}
	key.SetString(name)
	all.Content = append(all.Content, key, value)
	return all
}

func removed(all *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(all.Content); i += 2 {
		if all.Content[i].Value == name {
			all.Content = slices.Delete(all.Content, i, i+2)
			break
		}
	}
	if len(all.Content) == 0 {
		all.Style = yaml.FlowStyle
	}
	return all
}
