package protocol

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func masked(t require.TestingT, text string) string {
	j, findings := Parse("job.yaml", []byte(text))
	require.NoError(t, findings.Err(), text)
	out, err := j.Masked()
	require.NoError(t, err)
	return string(out)
}

func TestSecretsAreMaskedHoweverTheyAreWritten(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                    small + "secrets:\n  p: hunter2\n",
		"quoted key":               small + "\"secrets\":\n  p: hunter2\n",
		"flow style":               small + "secrets: {p: hunter2, 'q': [hunter2, {r: hunter2}]}\n",
		"block":                    small + "secrets:\n  p: |\n    a\n    hunter2\n\n    b\n",
		"number":                   small + "secrets: {p: 28347}\n",
		"an anchor":                small + "secrets: {p: &p hunter2}\nparameters: {q: *p}\n",
		"an alias":                 small + "parameters: {q: &p hunter2}\nsecrets: {p: *p}\n",
		"a merge":                  small + "parameters: {q: &p {r: hunter2}}\nsecrets: {<<: *p}\n",
		"a merge at the top":       small + "parameters: &p {secrets: {r: hunter2}}\n<<: *p\n",
		"an alias of the whole":    small + "parameters: &p {r: hunter2}\nsecrets: *p\n",
		"a comment":                small + "# old: hunter2\nsecrets:\n  # was hunter2\n  p: x # hunter2\n  # hunter2\nversion: 1 # hunter2\n",
		"JSON":                     `{"protocolVersion": 2, "name": "a", "type": "job", "secrets": {"p": "hunter2"}, "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "u"}], "taskRoles": {"m": {"dockerImage": "i", "commands": ["a"], "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}}}}`,
		"a login":                  strings.Replace(small, "ubuntu:24.04\"", "ubuntu:24.04\", auth: {username: hunter2, password: hunter2, token: hunter2, registryuri: r}", 1),
		"the address of a login":   strings.Replace(small, "ubuntu:24.04\"", "ubuntu:24.04\", auth: {registryuri: \"https://u:hunter2@r\"}", 1),
		"an address of data":       strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: p, type: data, uri: [\"https://u:hunter2@h/x\", \"HTTPS://hunter2@h/x\", \"https://u:a/hunter2@h/x\"]}", 1),
		"an address of a script":   strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: d, type: script, uri: 'https://<% $parameters.u %>:hunter2@h/x'}", 1),
		"an address of a plugin":   small + "extras: {com.microsoft.pai.runtimeplugin: [{plugin: git, parameters: {repo_uri: \"https://u:<% $secrets.p %>hunter2@h/x\"}}]}\nsecrets: {p: x}\n",
		"an address as a value":    small + "parameters: {data: \"https://u:hunter2@h/x\"}\n",
		"a login with a reference": strings.Replace(small, "ubuntu:24.04\"", "ubuntu:24.04\", auth: {username: u, password: \"hunter2<% $secrets.p %>\"}", 1) + "secrets: {p: x}\n",
	} {
		t.Run(name, func(t *testing.T) {
			out := masked(t, text)
			assert.NotContains(t, out, "hunter2")
			assert.NotContains(t, out, "28347")
			assert.Contains(t, out, Masked)
			var v any
			require.NoError(t, yaml.Unmarshal([]byte(out), &v), out)
		})
	}
}

func TestMaskingLeavesTheParsedFileAsItWasRead(t *testing.T) {
	j, findings := Parse("job.yaml", []byte(small+"# a comment\nsecrets: {p: &p hunter2}\nparameters: {q: *p}\n"))
	require.NoError(t, findings.Err())
	before, err := j.Fingerprint()
	require.NoError(t, err)
	first, err := j.Masked()
	require.NoError(t, err)
	second, err := j.Masked()
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
	after, err := j.Fingerprint()
	require.NoError(t, err)
	assert.Equal(t, before, after, "and its secrets are still in it")
}

func TestAReferenceToASecretStaysInALogin(t *testing.T) {
	out := masked(t, strings.Replace(small, "ubuntu:24.04\"", "ubuntu:24.04\", auth: {username: u, password: <% $secrets.p %>}", 1)+"secrets: {p: x}\n")
	assert.Contains(t, out, "password: <% $secrets.p %>")
	for _, address := range []string{"https://u@h:80/x", "ssh://git@h/x", "https://h/x@y", "mail ann@h", "git clone https://u:p@h/x", "https://<% $secrets.p %>@h", "https://<% $secrets.p %>:<% $secrets.p %>@h"} {
		out = masked(t, small+fmt.Sprintf("parameters: {a: %q}\nsecrets: {p: x}\n", address))
		assert.Equal(t, address != "https://u@h:80/x", strings.Contains(out, address), address)
	}
}

func TestAMaskedJobCantBeSubmittedAsItIs(t *testing.T) {
	out := masked(t, strings.Replace(small, "ubuntu:24.04\"", "ubuntu:24.04\", auth: {username: u, password: p}", 1)+"secrets: {p: x}\n")
	_, findings := Parse("job.yaml", []byte(out))
	require.Error(t, findings.Err())
	for _, f := range findings {
		assert.Equal(t, "job/masked", f.Rule)
	}
}

func TestAJobWithoutItsSecretsIsOtherwiseTheSame(t *testing.T) {
	j := mustParse(t, strings.Replace(small, "echo hello", "echo <% $secrets.p %>", 1)+"secrets: {p: hunter2}\n")
	shown, err := j.WithoutSecrets()
	require.NoError(t, err)
	assert.Equal(t, "echo "+Masked, shown.Roles[0].Command.Reveal())
	assert.Equal(t, j.Name, shown.Name)
}

// A masked job file contains none of the secrets, wherever they were in the file. Otherwise its meaning is unchanged.
func TestMaskedHoldsNoSecretProperty(t *testing.T) {
	styles := []yaml.Style{0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle, yaml.FlowStyle}
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		var marks []string
		var value func(depth int) *yaml.Node
		value = func(depth int) *yaml.Node {
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			switch {
			case kind == 0 && depth < 3:
				m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: rapid.SampledFrom([]yaml.Style{0, yaml.FlowStyle}).Draw(t, "style")}
				for range rapid.IntRange(0, 3).Draw(t, "fields") {
					n++
					m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprintf("k%d", n)}, value(depth+1))
				}
				return m
			case kind == 1 && depth < 3:
				l := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
				for range rapid.IntRange(0, 3).Draw(t, "items") {
					l.Content = append(l.Content, value(depth+1))
				}
				return l
			case kind == 2:
				n++
				mark := fmt.Sprintf("7%06d7", n)
				marks = append(marks, mark)
				return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: mark}
			}
			n++
			mark := fmt.Sprintf("mark%06dx", n)
			marks = append(marks, mark)
			text := mark + rapid.StringOf(rapid.RuneFrom([]rune("ab:#\"'\n -{}[]&*!|>%@`é"))).Draw(t, "text")
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: rapid.SampledFrom(styles).Draw(t, "style")}
		}
		top := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for range rapid.IntRange(1, 5).Draw(t, "secrets") {
			n++
			top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprintf("s%d", n)}, value(0))
		}
		b, err := yaml.Marshal(map[string]*yaml.Node{"secrets": top})
		require.NoError(t, err)
		j, findings := Parse("job.yaml", append([]byte(small), b...))
		if findings.Err() != nil { // the encoder writes some texts so that nothing can read them
			t.Skip("the encoder wrote no YAML")
		}
		out, err := j.Masked()
		require.NoError(t, err)
		for _, mark := range marks {
			require.NotContains(t, string(out), mark)
		}
		again, findings := parse("masked.yaml", out, true)
		require.NoError(t, findings.Err(), string(out))
		require.Equal(t, j.Roles, again.Roles)
	})
}

func TestMaskingKeepsCommandsAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab:#\"'\n\t -{}[]&*!|>%@`é\u00a0\\"))).Draw(t, "text")
		if strings.Contains(text, tagOpen) {
			t.Skip("a reference")
		}
		style := rapid.SampledFrom([]yaml.Style{0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle}).Draw(t, "style")
		b, err := yaml.Marshal(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style}}})
		require.NoError(t, err)
		file := strings.Replace(small, "    commands: [echo hello]\n", "    commands:\n      "+strings.ReplaceAll(strings.TrimSuffix(string(b), "\n"), "\n", "\n      ")+"\n", 1)
		j, findings := Parse("job.yaml", []byte(file))
		if findings.Err() != nil {
			t.Skip("the encoder wrote no YAML")
		}
		out, err := j.Masked()
		require.NoError(t, err)
		again, findings := Parse("masked.yaml", out)
		require.NoError(t, findings.Err(), string(out))
		require.Equal(t, j.Roles[0].Command.Reveal(), again.Roles[0].Command.Reveal(), "of %s\nbecame %s", file, out)
	})
}

var maskedSecrets = regexp.MustCompile(`(?s)\nsecrets:.*`)

func TestOtherValuesStayWhatTheyWere(t *testing.T) {
	out := masked(t, "# a comment\n"+small+"parameters:\n  a: 010\n  b: \"010\"\n  c: 1.10\n  d: yes\n  e: |\n    x\n    y\n  f: >\n    x\n    y\n\n  g: ''\nsecrets: {p: x}\n")
	assert.Equal(t, `protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: "ubuntu:24.04"}
taskRoles:
  main:
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}
    commands: [echo hello]
parameters:
  a: 010
  b: "010"
  c: 1.10
  d: yes
  e: |
    x
    y
  f: |
    x y
  g: ''`, maskedSecrets.ReplaceAllString(out, ""))
}

func TestTheFingerprintChangesWithASecretAndWithNoComment(t *testing.T) {
	of := func(secret, comment string) string {
		j, found := Parse("job.yaml", []byte("protocolVersion: 2\nname: train\ntype: job"+comment+"\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\nsecrets: {token: "+secret+"}\n"+
			"taskRoles: {main: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: ['login <% $secrets.token %>']}}\n"))
		require.NoError(t, found.Err())
		sum, err := j.Fingerprint()
		require.NoError(t, err)
		return sum
	}
	assert.Len(t, of("a", ""), 64)
	assert.Equal(t, of("a", ""), of("a", " # of Monday"))
	assert.NotEqual(t, of("a", ""), of("b", ""))
}
