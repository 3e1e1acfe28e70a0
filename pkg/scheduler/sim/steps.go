package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/strictyaml"
)

// rawStep is one entry of a steps file as it was written.
type rawStep struct{ node *yaml.Node }

// DecodeNode implements strictyaml.NodeDecoder. It takes everything: a step that makes no sense is
// answered when its turn comes, so that the others are run.
func (r *rawStep) DecodeNode(_ *strictyaml.Decoder, n *yaml.Node, _ strictyaml.Path) { r.node = n }

// readSteps reads a list of steps in YAML or JSON. It fails only if the text is neither, or no list.
func readSteps(file string, data []byte) ([]rawStep, error) {
	if list := bytes.TrimSpace(data); len(list) > 0 && list[0] == '[' && json.Valid(data) {
		return readJSON(data)
	}
	var steps []rawStep
	if _, findings := strictyaml.Decode(file, data, &steps); findings.Err() != nil {
		return nil, findings
	}
	return steps, nil
}

// readJSON reads a list in JSON, which is much faster to read than as YAML, and has escapes that
// YAML hasn't.
func readJSON(data []byte) ([]rawStep, error) {
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	r.dec.UseNumber()
	n, err := r.value()
	if err != nil {
		return nil, err
	}
	steps := make([]rawStep, len(n.Content))
	for i, c := range n.Content {
		steps[i].node = c
	}
	return steps, nil
}

// jsonReader makes YAML nodes from JSON, so that there is one way to read a step.
type jsonReader struct {
	dec  *json.Decoder
	data []byte
	line int
	read int64
}

// at returns the line that the decoder is at.
func (r *jsonReader) at() int {
	now := r.dec.InputOffset()
	r.line += bytes.Count(r.data[r.read:now], []byte("\n"))
	r.read = now
	return r.line
}

func (r *jsonReader) value() (*yaml.Node, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.at()}
	switch v := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for r.dec.More() {
			c, err := r.value()
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err = r.dec.Token()
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
		if _, e := v.Int64(); e == nil {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	if err == io.EOF { // the decoder returns it as it is
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
