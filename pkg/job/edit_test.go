package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

const sweep = `# a sweep
name: sweep # the name
parameters:
  lr: 0.1   # learning rate
  model: 'it''s'
  text: "a \"b\""
  flow: {a: 1}
  long: |
    two
    lines
  größe: klein
taskRoles: {}
`

func TestAParameterIsSetWhereItStands(t *testing.T) {
	for name, c := range map[string]struct{ parameter, value, want string }{
		"a number":             {"lr", "0.01", "  lr: 0.01   # learning rate\n"},
		"text for a number":    {"lr", "fast", "  lr: fast   # learning rate\n"},
		"text with a comment":  {"lr", "a #b", "  lr: \"a #b\"   # learning rate\n"},
		"text like a map":      {"lr", "a: b", "  lr: \"a: b\"   # learning rate\n"},
		"single quotes":        {"model", "resnet", "  model: resnet\n"},
		"double quotes":        {"text", "x", "  text: x\n"},
		"a colon in the value": {"text", "nfs:/data", "  text: nfs:/data\n"},
		"another alphabet":     {"größe", "groß", "  größe: groß\n"},
		"nothing":              {"lr", "", "  lr: \"\"   # learning rate\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := SetParameter("job.yaml", []byte(sweep), c.parameter, c.value)
			require.NoError(t, err)
			assert.Contains(t, string(out), c.want)
			assert.Contains(t, string(out), "# a sweep\nname: sweep # the name\n")
		})
	}
	out, err := SetName("job.yaml", []byte(sweep), "other")
	require.NoError(t, err)
	assert.Contains(t, string(out), "# a sweep\nname: other # the name\nparameters:")
}

func TestAFileWithoutParametersIsToldHowToHaveThem(t *testing.T) {
	_, err := SetParameter("job.yaml", []byte("name: train\n"), "rate", "1")
	require.EqualError(t, err, "job.yaml: it has no parameters, so there is no parameters.rate to set")
	assert.Equal(t, "write parameters: into the file, and below it, indented: rate: VALUE", hint.Of(err))
}

func TestAParameterThatCantBeSetIsAnErrorWithARemedy(t *testing.T) {
	for name, c := range map[string]struct{ parameter, message string }{
		"unknown":       {"rate", "job.yaml: there is no parameters.rate to set"},
		"a map":         {"flow", "job.yaml:7: parameters.flow is not a single value"},
		"several lines": {"long", "job.yaml:8: parameters.long can't be replaced in place"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := SetParameter("job.yaml", []byte(sweep), c.parameter, "1")
			require.EqualError(t, err, c.message)
		})
	}
	_, err := SetParameter("job.yaml", []byte("name: [\n"), "a", "1")
	require.ErrorContains(t, err, "yaml/syntax")
}
