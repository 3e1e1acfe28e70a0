package catalogue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

// graph returns a catalogue. Each line of text, such as "b: a c", defines a service and its prerequisites. A service in brackets is disabled.
func graph(text string) *Catalogue {
	c := &Catalogue{services: map[string]*Service{}}
	for line := range strings.Lines(text) {
		name, requires, _ := strings.Cut(strings.TrimSpace(line), ":")
		enabled := !strings.HasPrefix(name, "[")
		name = strings.Trim(name, "[]")
		c.services[name] = &Service{Name: name, Requires: strings.Fields(requires), Enabled: enabled}
	}
	return c
}

func namesOf(s Selection) string {
	var out []string
	for _, one := range s.Services {
		out = append(out, one.Name)
	}
	return strings.Join(out, " ")
}

const diamond = "top: right left\nleft: bottom\nright: bottom\nbottom:\nalone:\n[off]: bottom\nlate: off alone"

func TestSelectOrdersServicesAfterWhatTheyRequire(t *testing.T) {
	for name, c := range map[string]struct {
		names, except []string
		want          string
		added         []string
	}{
		"all that are enabled":                 {nil, nil, "alone bottom late left right top", nil},
		"one with its prerequisites":           {[]string{"top"}, nil, "bottom left right top", []string{"bottom", "left", "right"}},
		"one beside a prerequisite of its own": {[]string{"left", "bottom"}, nil, "bottom left", nil},
		"one that is named twice":              {[]string{"alone", "alone"}, nil, "alone", nil},
		"one whose prerequisite is disabled":   {[]string{"late"}, nil, "alone late", []string{"alone"}},
		"all but one":                          {nil, []string{"top"}, "alone bottom late left right", nil},
		"all but one and what requires it":     {nil, []string{"alone", "late"}, "bottom left right top", nil},
		"nothing":                              {[]string{"top"}, []string{"top"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := graph(diamond).Select(c.names, c.except)
			require.NoError(t, err)
			assert.Equal(t, c.want, namesOf(s))
			assert.Equal(t, c.added, s.Added)
		})
	}
}

func TestSelectRefusesWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		names, except   []string
		message, remedy string
	}{
		"an unknown name":          {[]string{"botom"}, nil, "there is no service botom", `did you mean "bottom"?`},
		"unknown names":            {[]string{"xyz", "top"}, []string{"uvw"}, "there is no service xyz, uvw", "the services are alone, bottom, late, left, off, right, top"},
		"a disabled one":           {[]string{"off"}, nil, "off is disabled", "set enabled: true in the section off of services-configuration.yaml, and push it"},
		"an exclusion of a need":   {nil, []string{"bottom"}, "bottom can't be excluded: required by left, right, top", "exclude left, right, top as well, or also start bottom"},
		"and where one stays away": {[]string{"left"}, []string{"bottom"}, "bottom can't be excluded: required by left", "exclude left as well, or also start bottom"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := graph(diamond).Select(c.names, c.except)
			require.EqualError(t, err, c.message)
			assert.Equal(t, c.remedy, hint.Of(err))
		})
	}
}

func TestACircleIsNamed(t *testing.T) {
	c := graph("a: b\nb: c\nc: d b\nd:")
	_, err := c.Select(nil, nil)
	require.EqualError(t, err, "services wait for each other: b -> c -> b")
	s, err := c.Select([]string{"d"}, nil)
	require.NoError(t, err)
	assert.Equal(t, "d", namesOf(s))

	_, findings := load(t, "x: {chart: ./a, requires: [y]}\ny: {chart: ./b, requires: [x, nobody]}\n")
	assert.Equal(t, []string{
		`7:27: x.requires: services wait for each other: x -> y -> x [services/requires]`, "-> remove one of the prerequisites from requires",
		`8:27: y.requires: y requires "nobody", but there is no such service [services/requires]`, "-> the services are ammeter, base, metrics, storage, x, y",
	}, lines(findings))
}
