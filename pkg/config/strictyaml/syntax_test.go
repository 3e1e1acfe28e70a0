package strictyaml

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAMistakeInTheFormIsReportedOnItsLine(t *testing.T) {
	const file = `apiVersion: v1
kind: Layout
machine-sku:
  cpu:
    mem: 1
    cpu:
      vcore: 2
machine-list:
  - hostname: a
    hostip: 10.0.0.1
    machine-type: cpu
    labels:
      x: y
      z: w
  - hostname: b
    hostip: "10.0.0.2"
last: 1
`
	for name, c := range map[string]struct {
		right, wrong string
		place        string // line:column
		remedy       string
	}{
		"a field of an item one space too far":   {"    hostip: 10.0.0.1", "     hostip: 10.0.0.1", "10:6", "indentation"},
		"a field of an item one space too near":  {"    hostip: 10.0.0.1", "   hostip: 10.0.0.1", "10:4", "indentation"},
		"a deep field one space too far":         {"      z: w", "       z: w", "14:8", "indentation"},
		"a deep field one space too near":        {"      z: w", "     z: w", "14:6", "indentation"},
		"a map one space too far":                {"    cpu:\n", "     cpu:\n", "6:6", "indentation"},
		"a map one space too near":               {"    cpu:\n", "   cpu:\n", "6:4", "indentation"},
		"a field of the file one space too far":  {"last: 1", " last: 1", "17:2", "indentation"},
		"an item one space too near":             {"  - hostname: b", " - hostname: b", "15:2", "indentation"},
		"an item one space too far":              {"  - hostname: b", "   - hostname: b", "15:4", "indentation"},
		"an item at the margin":                  {"  - hostname: b", "- hostname: b", "15:1", "indentation"},
		"an item among fields":                   {"    hostip: \"", "    - \"", "16:5", "indentation"},
		"an item without a space after the dash": {"  - hostname: b", "  -hostname: b", "15:3", "indentation"},
		"a tab":                                  {"    machine-type", "\tmachine-type", "11:1", "never with tabs"},
		"a tab behind spaces":                    {"    machine-type", "  \tmachine-type", "11:3", "never with tabs"},
		"no space after the colon":               {"machine-type: cpu", "machine-type:cpu", "11:5", "a colon, a space"},
		"no space after the last colon of a map": {"z: w", "z:w", "14:7", "a colon, a space"},
		"a no-break space after the colon":       {"machine-type: cpu", "machine-type:\u00a0cpu", "11:18", "write a space in the place of this character, U+00A0"},
		"a control character":                    {"machine-type: cpu", "machine-type: 'c\apu'", "11:21", "remove it"},
		"a directive":                            {"last: 1", "%FOO\nlast: 1", "17:1", ""},
		"no colon":                               {"machine-type: cpu", "machine-type cpu", "11:5", "a colon, a space"},
		"two colons":                             {"hostname: b", "hostname: b: c", "15:3", "in single quotes"},
		"a quote that is never closed":           {"machine-type: cpu", "machine-type: 'cpu", "11:5", "close the quote"},
		"a quote that the next one seems to end": {"machine-type: cpu", "machine-type: \"cpu", "11:5", "quotes"},
		"a bracket that is not closed":           {"machine-type: cpu", "machine-type: [cpu", "11:5", "close the bracket"},
		"a brace that is not closed":             {"machine-type: cpu", "machine-type: {a: cpu", "11:5", "close the bracket"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, file, c.right)
			_, findings := Parse("f", []byte(strings.Replace(file, c.right, c.wrong, 1)))
			require.Len(t, findings, 1)
			assert.Equal(t, "yaml/syntax", findings[0].Rule)
			assert.Contains(t, findings[0].String(), "f:"+c.place+": ")
			assert.Contains(t, findings[0].Remedy, c.remedy)
		})
	}
}

func TestAMistakeAtTheFarEndOfALargeFileIsFound(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine-list:\n")
	for range 5000 {
		b.WriteString("  - hostname: a\n    hostip: b\n")
	}
	b.WriteString("   - hostname: c\n")
	_, findings := Parse("f", []byte(b.String()))
	require.Len(t, findings, 1)
	assert.Equal(t, 10002, findings[0].Line)
}
