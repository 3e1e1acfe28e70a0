package config

import (
	"fmt"
	"path/filepath"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Value is one effective value with its origin.
type Value struct {
	File   string `json:"file"`
	Field  string `json:"field"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // FILE:LINE, or default
}

// originDefault is the origin of values that no file contains.
const originDefault = "default"

// Values returns all effective values in the order of the files, with masked secrets. The argument secrets contains additional secret paths, as for
// Masked.
func (c *Cluster) Values(secrets ...strictyaml.Path) ([]Value, error) {
	var out []Value
	err := c.effective(secrets, func(name string, root *yaml.Node) error {
		var err error
		leaves(root, nil, func(n *yaml.Node, p fieldPath) {
			v := Value{File: name, Field: p.String(), Origin: c.origin(name, p)}
			if e := n.Decode(&v.Value); e != nil {
				err = fmt.Errorf("show %s: %w", v.Field, e)
			}
			out = append(out, v)
		})
		return err
	})
	return out, err
}

// Annotated returns the files with all effective values as one YAML stream. Comments contain the origin of each value. Secrets are masked. The
// argument secrets contains additional secret paths, as for Masked.
func (c *Cluster) Annotated(secrets ...strictyaml.Path) ([]byte, error) {
	var out []byte
	err := c.effective(secrets, func(name string, root *yaml.Node) error {
		leaves(root, nil, func(n *yaml.Node, p fieldPath) { n.LineComment = "# " + c.origin(name, p) })
		b, err := strictyaml.Encode(root, nil)
		out = append(out, []byte("---\n# "+filepath.Join(c.Dir, name)+"\n")...)
		out = append(out, b...)
		return err
	})
	return out, err
}

func (c *Cluster) effective(secrets []strictyaml.Path, visit func(name string, root *yaml.Node) error) error {
	values, err := c.Masked(secrets...).contents()
	if err != nil {
		return err
	}
	for _, name := range Files() {
		root, err := strictyaml.Node(values[name])
		if err != nil {
			return fmt.Errorf("show %s: %w", name, err)
		}
		if err := visit(name, root); err != nil {
			return err
		}
	}
	return nil
}

// leaves calls visit for every scalar, and for empty lists and maps.
func leaves(n *yaml.Node, p fieldPath, visit func(*yaml.Node, fieldPath)) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			leaves(n.Content[i+1], p.With(n.Content[i].Value), visit)
		}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		for i, e := range n.Content {
			leaves(e, p.With(i), visit)
		}
	default:
		visit(n, p)
	}
}

func (c *Cluster) origin(name string, p fieldPath) string {
	doc := c.docs[name]
	if !doc.Has(p...) {
		return originDefault
	}
	line, _, _ := doc.Position(p)
	return name + ":" + strconv.Itoa(line)
}
