package vc

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// lines holds the lines of a file, each with its line break.
type lines struct{ all []string }

// span returns the first and the last line of an entry in a block map, counted from 0. Lines with more indentation than the
// entry's key belong to the entry. Comments above the key don't belong to the entry.
func (l *lines) span(e *entry) (first, last int) {
	first = e.key.Line - 1
	last = first
	for i := first + 1; i < len(l.all); i++ {
		text := strings.TrimRight(l.all[i], " \t\r\n")
		if text == "" {
			continue
		}
		if indentOf(text) < e.key.Column {
			break
		}
		last = i
	}
	return first, last
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// comments returns the first comment line directly above an entry. Without such a comment, it returns the entry's own line.
func (l *lines) comments(e *entry) int {
	first := e.key.Line - 1
	for first > 0 && strings.HasPrefix(strings.TrimSpace(l.all[first-1]), "#") && indentOf(l.all[first-1]) == e.key.Column-1 {
		first--
	}
	return first
}

func (l *lines) bytes() []byte { return []byte(strings.Join(l.all, "")) }

// remove removes an entry and the comments above the entry.
func (l *lines) remove(e *entry) []byte {
	_, last := l.span(e)
	l.all = slices.Delete(l.all, l.comments(e), last+1)
	return l.bytes()
}

func (l *lines) write(e *entry, value *yaml.Node) ([]byte, error) {
	first, last := l.span(e)
	text, err := l.encode(e.key, value, e.key.Column-1)
	if err != nil {
		return nil, err
	}
	l.all = slices.Replace(l.all, first, last+1, text...)
	return l.bytes(), nil
}

// insertAfter adds an entry after the entry e in the same block map.
func (l *lines) insertAfter(e *entry, name string, value *yaml.Node) ([]byte, error) {
	_, last := l.span(e)
	key := &yaml.Node{}
	key.SetString(name)
	text, err := l.encode(key, value, e.key.Column-1)
	if err != nil {
		return nil, err
	}
	l.endLine(last)
	l.all = slices.Insert(l.all, last+1, text...)
	return l.bytes(), nil
}

// endLine adds a missing line break to line i, unless the line is empty. Only the file's last line can have no line break.
func (l *lines) endLine(i int) {
	if l.all[i] != "" && !strings.HasSuffix(l.all[i], "\n") {
		l.all[i] += "\n"
	}
}

// owner returns the deepest entry in block style that contains all virtual clusters. If the virtual clusters are missing or on
// one line, this entry must be rewritten.
func (l *lines) owner(root *yaml.Node, top, all *entry) *entry {
	switch {
	case !block(root):
		return nil
	case all != nil && block(top.value):
		return all
	}
	return top
}

// replace rewrites all virtual clusters in their owner. If the file has no owner, replace adds an entry at the end.
func (l *lines) replace(owner *entry, virtualClusters, root *yaml.Node, top, all *entry) ([]byte, error) {
	pair := func(key string, value *yaml.Node) *yaml.Node {
		k := &yaml.Node{}
		k.SetString(key)
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{k, value}}
	}
	switch {
	case !block(root):
		return nil, errors.New("the file is written in one line")
	case owner != nil && owner == all:
		return l.write(all, virtualClusters)
	case top == nil:
		_, last := l.span(lastEntry(root))
		if _, err := l.insertAfter(lastEntry(root), keyScheduler, pair(keyVirtualClusters, virtualClusters)); err != nil {
			return nil, err
		}
		l.all = slices.Insert(l.all, last+1, "\n")
		return l.bytes(), nil
	case block(top.value) && len(top.value.Content) > 0:
		return l.insertAfter(lastEntry(top.value), keyVirtualClusters, virtualClusters)
	case top.value.Kind != yaml.MappingNode: // the key scheduler has no content
		return l.write(top, pair(keyVirtualClusters, virtualClusters))
	}
	return l.write(top, with(top.value, keyVirtualClusters, virtualClusters))
}

func (l *lines) encode(key, value *yaml.Node, indent int) ([]string, error) {
	k := *key
	k.HeadComment, k.FootComment = "", "" // the file keeps the lines of these comments
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{&k, value}}); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	out := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range out {
		if out[i] != "\n" {
			out[i] = strings.Repeat(" ", indent) + out[i]
		}
	}
	out[len(out)-1] += "\n"
	return out, nil
}
