package store

import (
	"bytes"
	"fmt"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Limits of the search for secrets. A secret shorter than minSearched may be a common word. Beyond maxSearched secrets, only some of the secrets
// are searched for.
const (
	minSearched = 8
	maxSearched = 500
)

// inTheOpen warns about secrets that also occur outside of secret fields, such as a password in a label. Only the operator can correct such a
// configuration.
func inTheOpen(cluster *config.Cluster, c *Copy) config.Findings {
	var out config.Findings
	seen := map[string]bool{}
	for _, file := range config.Files() {
		for _, p := range c.parts[file] {
			v := valueOf(p.Text)
			if len(v) < minSearched || seen[v] || len(seen) == maxSearched {
				continue
			}
			seen[v] = true
			for _, name := range config.Files() {
				if at := bytes.Index(c.shown[name], []byte(v)); at >= 0 {
					f := cluster.Finding(name, strictyaml.Warning, nil, "secret/in-the-open",
						fmt.Sprintf("the value of %s in %s also occurs here as plain text", p.Field, file), "remove it here, or choose another secret")
					f.Line, f.Column = c.line(name, at), 1
					out = append(out, f)
				}
			}
		}
	}
	return out
}

// line returns the line number in the complete file for an offset in the text without secrets. A secret may have several lines.
func (c *Copy) line(name string, at int) int {
	before := c.shown[name][:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	for i := range bytes.Count(before, []byte(Reference)) {
		line += bytes.Count([]byte(c.parts[name][i].Text), []byte("\n"))
	}
	return line
}
