package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/secret"
)

// Masked is the text that replaces a secret.
const Masked = "******"

// Masked returns the job file with Masked in place of all values of secrets, all literal credentials for registries, and all addresses that
// contain credentials. It works on the parsed file, so that quotes, flow style, anchors and merges can't hide a value. It removes comments,
// because comments may contain old passwords.
func (j *Job) Masked() ([]byte, error) {
	c := copier{masked: map[*yaml.Node]bool{}}
	c.mask(j.tree.root.field("secrets"), scalar)
	if list := j.tree.root.field("prerequisites"); list != nil {
		for _, p := range list.items {
			if auth := p.field("auth"); auth != nil {
				c.maskLiterals(auth)
			}
		}
	}
	for _, key := range withAddresses() {
		c.mask(j.tree.root.field(key), hasLogin)
	}
	return c.encode(j)
}

// withAddresses returns the keys of a job file whose values may be addresses with credentials, such as addresses of data, registries or a
// plugin's repository.
func withAddresses() []string { return []string{"parameters", "prerequisites", "extras"} }

// urlLogin matches an address with credentials. The credentials may contain references, and references may contain spaces.
var urlLogin = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9+.-]*)://((?:<%[^>]*%>|\S)*)@(?:<%[^>]*%>|\S)*\s*$`)

// hasLogin reports whether a text is an address with a literal password. In an http address, a user name without a password also counts, because
// it may be a token.
func hasLogin(v *value) bool {
	if v.kind != kindText {
		return false
	}
	m := urlLogin.FindStringSubmatch(v.text())
	if m == nil || !strings.Contains(m[2], ":") && !strings.HasPrefix(strings.ToLower(m[1]), "http") {
		return false
	}
	return secret.HasLogin(withoutTags(strings.TrimSpace(v.text())))
}

// Fingerprint returns the SHA-256 hash of the job file without its comments. The hash depends on the secrets, so it must be stored as safely as
// the secrets themselves: with the hash, a reader could check guesses.
func (j *Job) Fingerprint() (string, error) {
	text, err := (&copier{}).encode(j)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// copier copies a parsed file, so that masking doesn't change the file itself.
type copier struct {
	masked map[*yaml.Node]bool // values that are replaced
	copies map[*yaml.Node]*yaml.Node
}

// encode returns a copy of a job file as text.
func (c *copier) encode(j *Job) ([]byte, error) {
	c.copies = map[*yaml.Node]*yaml.Node{}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(c.copy(j.tree.top)); err != nil {
		return nil, fmt.Errorf("write the job file: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write the job file: %w", err)
	}
	return b.Bytes(), nil
}

// WithoutSecrets returns the job with Masked in place of each secret, so that the result may be shown.
func (j *Job) WithoutSecrets() (*Job, error) {
	text, err := j.Masked()
	if err != nil {
		return nil, err
	}
	masked, findings := ParseMasked(j.File, text)
	return masked, findings.Err()
}

// ParseMasked parses the output of Masked. The job is only for display and can't be submitted. It is nil if the file has errors.
func ParseMasked(file string, data []byte) (*Job, strictyaml.Findings) {
	return parse(file, data, true)
}

// MaskStored masks a text that another program has stored, and that may not be a valid job file. The error doesn't contain any part of the text.
func MaskStored(text []byte) ([]byte, error) {
	const file = "the job file"
	t, findings := readTree(file, text)
	if len(findings) > 0 || t.root.kind != kindMap {
		return nil, errors.New("the job file can't be read")
	}
	return (&Job{File: file, tree: t}).Masked()
}

// mask marks the value v and the values below it for which chosen returns true. A value that an alias or a merge shares with other places is
// replaced in all these places.
func (c *copier) mask(v *value, chosen func(*value) bool) {
	if v == nil {
		return
	}
	for _, f := range v.fields {
		c.mask(f.value, chosen)
	}
	for _, item := range v.items {
		c.mask(item, chosen)
	}
	if chosen(v) {
		c.masked[v.node] = true
	}
}

// scalar reports whether a value is neither a list nor a map nor empty.
func scalar(v *value) bool { return v.node.Kind == yaml.ScalarNode && v.kind != kindNull }

// maskLiterals marks the values of credentials that aren't references. The address of the registry isn't secret.
func (c *copier) maskLiterals(v *value) {
	for _, f := range v.fields {
		if f.name == "registryuri" || f.value.kind == kindText && hasTag(f.value.text()) && onlyTags(f.value.text()) {
			continue
		}
		c.mask(f.value, scalar)
	}
}

// copy returns a copy of a node without its comments. It quotes strings that the encoder would otherwise change.
func (c *copier) copy(n *yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	if known := c.copies[n]; known != nil {
		return known
	}
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Anchor: n.Anchor}
	c.copies[n] = out
	switch {
	case c.masked[n]:
		out.Tag, out.Value, out.Style = "!!str", Masked, yaml.DoubleQuotedStyle
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		out.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
		if !plainBlock(n.Value) {
			out.Style = yaml.DoubleQuotedStyle
		}
	}
	out.Alias = c.copy(n.Alias)
	for _, child := range n.Content {
		out.Content = append(out.Content, c.copy(child))
	}
	return out
}

// plainBlock reports whether a text can be written as a literal block of YAML without changing it.
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
