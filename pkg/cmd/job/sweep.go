package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	sweepAsks = 200    // a sweep of more jobs needs a confirmation
	sweepMost = 10_000 // more are a mistake
)

// axis is one parameter of a sweep, with its values.
type axis struct {
	parameter string
	values    []string
}

// readSweep parses the values of --sweep, each in the form NAME=VALUE,VALUE...
func readSweep(texts []string) ([]axis, error) {
	var out []axis
	jobs := 1
	for _, text := range texts {
		name, list, ok := strings.Cut(text, "=")
		if !ok || name == "" || list == "" {
			return nil, cmdutil.Usagef("--sweep %s: write NAME=VALUE,VALUE...", text)
		}
		if slices.ContainsFunc(out, func(a axis) bool { return a.parameter == name }) {
			return nil, cmdutil.Usagef("--sweep %s: %s is given twice; write all its values into one --sweep", text, name)
		}
		a := axis{parameter: name, values: strings.Split(list, ",")}
		for i, v := range a.values {
			switch {
			case v == "":
				return nil, cmdutil.Usagef("--sweep %s: a value is empty", text)
			case slices.Contains(a.values[:i], v):
				return nil, cmdutil.Usagef("--sweep %s: the value %s is given twice", text, v)
			}
		}
		if jobs *= len(a.values); jobs > sweepMost {
			return nil, cmdutil.Usagef("--sweep: that is more than %d jobs", sweepMost)
		}
		out = append(out, a)
	}
	return out, nil
}

// sweep returns one job for each combination of the values. The value of the last parameter changes first.
func (opts *SubmitOptions) sweep(base *submission) ([]submission, error) {
	axes, err := readSweep(opts.Sweep)
	if err != nil {
		return nil, err
	}
	all := []submission{unparsed(base.File, base.Text)}
	names := []string{base.job.Name}
	for _, a := range axes {
		var next []submission
		var called []string
		for i, in := range all {
			for _, v := range a.values {
				text, err := job.SetParameter(in.File, in.Text, a.parameter, v)
				if err != nil {
					return nil, err
				}
				one := unparsed(in.File, text)
				one.parameters = map[string]string{a.parameter: v}
				maps.Copy(one.parameters, in.parameters)
				next, called = append(next, one), append(called, names[i]+"-"+inName(a.parameter)+"-"+inName(v))
			}
		}
		all, names = next, called
	}
	for i := range all {
		if n := slices.Index(names, names[i]); n < i {
			return nil, cmdutil.Usagef("--sweep: two jobs would have the name %s: a name has only letters, digits, - and _", names[i])
		}
		if all[i].Text, err = job.SetName(all[i].File, all[i].Text, names[i]); err != nil {
			return nil, err
		}
	}
	if len(all) > sweepAsks && !opts.Submit.DryRun {
		if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "a sweep of "+plural.Of(len(all), "job"), fmt.Sprintf("Submit %d jobs?", len(all))); err != nil {
			return nil, err
		}
	}
	return parse(opts.Factory, all...)
}

// inName replaces the characters that are not allowed in the name of a job.
func inName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, s)
}
