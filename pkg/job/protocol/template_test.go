package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const values = `parameters:
  text: "a&b <c> 'd' \"e\""
  one: 1.0
  small: 1e-7
  large: 1e21
  big: 123456789012345680000
  half: 0.5
  hex: 0x1F
  yes_: true
  day: 2020-01-02
  list: [1, two, [3, 4], ~]
  map: {a: {b: deep}, c: 1}
  none: ~
  tagged: "<% $secrets.p %>"
  open: "<%"
secrets:
  p: "s&'\"<>%"
  list: [x, y]
`

// command returns a job file with one command, which begins on line 24.
func command(text string) string {
	return values + `protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: u}
  - {name: s, type: script, uri: "git://x", version: 1.0, contributor: Bob}
  - {name: d, type: data, uri: [first, second]}
taskRoles:
  main:
    dockerImage: img
    script: s
    data: d
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands:
      - ` + text + "\n"
}

func TestReferencesAreFilledInOnceAndNeverEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"echo <% $parameters.text %>":                        `echo a&b <c> 'd' "e"`,
		"echo <%$parameters.one%> <%  $parameters.small  %>": "echo 1 1e-7",
		"<% $parameters.large %> <% $parameters.big %>":      "1e+21 123456789012345680000",
		"<% $parameters.half %> <% $parameters.hex %>":       "0.5 31",
		"<% $parameters.yes_ %> <% $parameters.day %>":       "true 2020-01-02",
		"<% $parameters.list %>":                             "1,two,3,4,",
		"<% $parameters.list[1] %><% $parameters.list.0 %>":  "two1",
		"<% $parameters.map.a.b %>":                          "deep",
		"<% $secrets.p %> <% $secrets.list[1] %>":            `s&'"<>% y`,
		"<% $script.uri %> <% $script.version %>":            "git://x 1",
		"<% $script.contributor %> <% $data.name %>":         "Bob d",
		"wget <% $data.uri[0] %> <% $data.uri.1 %>":          "wget first second",
		"a <%! nothing is left of a comment %> b":            "a  b",
		"echo 100 %> 5 < % <% $parameters.open %>":           "echo 100 %> 5 < % <%",
		"| \n        a\n        <% $parameters.one %>\n":     "a\n1",
		"> \n        a\n        <% $parameters.one %>\n":     "a 1",
		`"  a\t<% $parameters.one %>  "`:                     "a\t1",
	} {
		t.Run(text, func(t *testing.T) {
			j := mustParse(t, command(text))
			assert.Equal(t, want, j.Roles[0].Command.Reveal())
		})
	}
}

func TestAValueIsNotReadAgain(t *testing.T) {
	j, findings := Parse("job.yaml", []byte(command("echo <% $parameters.tagged %>")))
	require.Len(t, findings.Warnings(), 1)
	assert.Contains(t, findings[0].Message, "is not filled in")
	assert.Equal(t, "echo <% $secrets.p %>", j.Roles[0].Command.Reveal())
}

func TestAnUnresolvedReferenceIsNamedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"echo <% $parameters.texxt %>":   `33:14: taskRoles.main.commands[0]: <% $parameters.texxt %> is not defined: $parameters has no texxt [job/reference] did you mean "text"?`,
		"'echo <% $parameter.text %>'":   `33:15: taskRoles.main.commands[0]: <% $parameter.text %> is not defined: there is no $parameter [job/reference] did you mean "$parameters"?`,
		"echo <% $output.uri %>":         `33:14: taskRoles.main.commands[0]: <% $output.uri %> is not defined: the role main has no output [job/reference] write output: in the role, and the name of a prerequisite`,
		"echo <% $data.uri[7] %>":        `33:14: taskRoles.main.commands[0]: <% $data.uri[7] %> is not defined: $data.uri has no 7 [job/reference] it is a list of 2, counted from 0`,
		"echo <% $data.uri.x.y %>":       `33:14: taskRoles.main.commands[0]: <% $data.uri.x.y %> is not defined: $data.uri has no x [job/reference] it is a list of 2, counted from 0`,
		"echo <% $parameters.one.two %>": `33:14: taskRoles.main.commands[0]: <% $parameters.one.two %> is not defined: $parameters.one has no two [job/reference] it has no parts; remove .two`,
		"echo <% $parameters.map %>":     `33:14: taskRoles.main.commands[0]: <% $parameters.map %> is a map, and has no text [job/reference] name one of its parts, such as <% $parameters.map.a %>`,
		"echo <% $parameters %>":         `33:14: taskRoles.main.commands[0]: <% $parameters %> is a map, and has no text [job/reference] name one of its parts, such as <% $parameters.text %>`,
		"echo <% $parameters.none %>":    `33:14: taskRoles.main.commands[0]: <% $parameters.none %> is empty [job/reference] write a value for it`,
		"echo <% x %>":                   `33:14: taskRoles.main.commands[0]: <% x %> is not defined: there is no x [job/reference] references begin with $data, $output, $parameters, $script, $secrets`,
		"echo <% %>":                     `33:14: taskRoles.main.commands[0]: a reference is empty [job/reference] write its name, such as <% $parameters.name %>`,
		"echo <%# $parameters.map %>":    `33:14: taskRoles.main.commands[0]: <% # $parameters.map %> is not a known reference [job/reference] only references such as <% $parameters.name %> are filled in`,
		"echo <% $parameters.one":        `33:14: taskRoles.main.commands[0]: a reference begins with <% and doesn't end [job/reference] end it with %>; if the text itself needs <%, put it into a parameter`,
		"|\n        <% $data.name %>\n\n        é <% $data.name %> <% $data.nam %>\n": `36:28: taskRoles.main.commands[0]: <% $data.nam %> is not defined: $data has no nam [job/reference] did you mean "name"?`,
		">\n        one\n        two <% $secrets.quux %>\n":                           `35:13: taskRoles.main.commands[0]: <% $secrets.quux %> is not defined: $secrets has no quux [job/reference] it has list, p`,
		"\"a\\t<% $secrets.quux %>\"":                                                 `33:13: taskRoles.main.commands[0]: <% $secrets.quux %> is not defined: $secrets has no quux [job/reference] it has list, p`,
	} {
		t.Run(text, func(t *testing.T) {
			_, findings := Parse("job.yaml", []byte(command(text)))
			require.Len(t, findings.Errors(), 1)
			assert.Equal(t, want, strings.TrimPrefix(findings[0].String(), "job.yaml:")+" "+findings[0].Remedy)
			assert.NotContains(t, findings.Error(), `s&'`)
		})
	}
}

func TestFilledInTextHasALimit(t *testing.T) {
	text := small + "parameters: {x: " + strings.Repeat("y", 60_000) + "}\n"
	text = strings.Replace(text, "[echo hello]", "["+strings.Repeat("'<% $parameters.x %>', ", 5000)+"]", 1)
	_, findings := Parse("job.yaml", []byte(text))
	require.Len(t, findings, 1)
	assert.Equal(t, "job/size", findings[0].Rule)
}

func TestNumbersAreWrittenAsJavaScriptDoes(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", -1: "-1", 1.5: "1.5", 1e-6: "0.000001", 1e-7: "1e-7", 1.25e-9: "1.25e-9", 1e20: "100000000000000000000", 1e21: "1e+21",
		-1.5e300: "-1.5e+300", 0.1: "0.1", 123456.789: "123456.789", 9007199254740993: "9007199254740992", 5e-324: "5e-324",
	} {
		assert.Equal(t, want, formatNumber(f))
	}
}
