package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Masked replaces secrets.
const Masked = "******"

// Masked returns the job file with all values of secrets, and literal values in logins to
// registries, replaced. It uses the parsed file, so that quoting, flow style, anchors and merges
// can't hide values. Comments are left out, because people keep old passwords in them.
func (j *Job) Masked() ([]byte, error) {
	return j.encode(func(t *tree) {
		t.root.field("secrets").mask()
		if list := t.root.field("prerequisites"); list != nil {
			for _, p := range list.items {
				if auth := p.field("auth"); auth != nil {
					auth.maskLiterals()
				}
			}
		}
	})
}

// Fingerprint is the SHA-256 of the job file without its comments. It covers secrets, so it must be stored with
// them: a reader could use it to check guesses.
func (j *Job) Fingerprint() (string, error) {
	text, err := j.encode(func(*tree) {})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// encode writes the parsed file after a change.
func (j *Job) encode(change func(*tree)) ([]byte, error) {
	// Parse the text again, because the tree is changed.
	t, findings := readTree(j.File, j.tree.doc.Text())
	if err := findings.Err(); err != nil {
		return nil, err
	}
	change(t)
	tidy(t.top, map[*yaml.Node]bool{})
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(t.top); err != nil {
		return nil, fmt.Errorf("write the job file: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write the job file: %w", err)
	}
	return b.Bytes(), nil
}

// WithoutSecrets returns the job with Masked in the place of each secret: the version that may be shown.
func (j *Job) WithoutSecrets() (*Job, error) {
	text, err := j.Masked()
	if err != nil {
		return nil, err
	}
	masked, findings := ParseMasked(j.File, text)
	return masked, findings.Err()
}

// ParseMasked reads the output of Masked, to show its content; it can't be submitted. The job is nil if the file has errors.
func ParseMasked(file string, data []byte) (*Job, strictyaml.Findings) {
	return parse(file, data, true)
}

// MaskStored is Masked for a text that another program has stored, and that may not be a valid job here. The error doesn't quote the text.
func MaskStored(text []byte) ([]byte, error) {
	const file = "the job file"
	t, findings := readTree(file, text)
	if len(findings) > 0 || t.root.kind != kindMap {
		return nil, errors.New("the job file can't be read")
	}
	return (&Job{File: file, tree: t}).Masked()
}

// mask replaces all values below v. Values that an alias or a merge shares with other places are replaced
// there as well.
func (v *value) mask() {
	if v == nil {
		return
	}
	for _, f := range v.fields {
		f.value.mask()
	}
	for _, item := range v.items {
		item.mask()
	}
	if v.node.Kind == yaml.ScalarNode && v.kind != kindNull {
		v.node.Tag, v.node.Value, v.node.Style = "!!str", Masked, yaml.DoubleQuotedStyle
	}
}

// maskLiterals replaces values that are not references. The registry's address is not secret.
func (v *value) maskLiterals() {
	for _, f := range v.fields {
		if f.name == "registryuri" || f.value.kind == kindText && hasTag(f.value.text()) && onlyTags(f.value.text()) {
			continue
		}
		f.value.mask()
	}
}

// tidy removes comments, and quotes texts that the encoder would not write as they are.
func tidy(n *yaml.Node, seen map[*yaml.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		n.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
		if !plainBlock(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	tidy(n.Alias, seen)
	for _, c := range n.Content {
		tidy(c, seen)
	}
}

// plainBlock reports whether a text survives as a block of lines.
func plainBlock(s string) bool {
	if s == "" || strings.TrimLeft(s, " \t\r\n") != s || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for _, line := range strings.Split(s, "\n") {
		if strings.TrimRight(line, " \t") != line {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0x85 || r == 0xa0 || r == 0xfeff || r == 0x2028 || r == 0x2029
	})
}
