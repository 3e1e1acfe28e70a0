package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// resources are the common resources that a phase needs on a node: paictl detects, compares and
// applies them in the same way for every phase.
type resources struct {
	modules   []module
	sysctls   map[string]string
	files     []file
	gone      []string // files of earlier releases of paictl to remove
	blocks    []block
	artifacts []artifact
	units     []unit
	// setup is shell code that runs first, between runs after the files and before the units, and after runs last, if anything changes.
	setup, between, after string
}

// module is a kernel module. probe is a path that exists if the kernel has it built in.
type module struct{ name, probe string }

// file is a text file that paictl owns as a whole.
type file struct {
	path   string
	mode   uint32
	body   []byte
	secret bool // never shown in a diff
}

// block is a part of a file that belongs to someone else, between two marker lines.
type block struct {
	path string
	body []byte
}

// artifact is a file of the bundle at its place on the node.
type artifact struct {
	path string
	mode uint32
	src  bundle.Artifact
}

// unit is a systemd unit that should be enabled and running. It is restarted when one of the files
// that it reads has changed.
type unit struct {
	name  string
	reads []string
	// later means that another program starts it; paictl enables it, and restarts it only if it runs.
	later bool
}

// detect returns the shell code that asks a host for the state of the resources.
func (r resources) detect() string {
	var b strings.Builder
	for _, m := range r.modules {
		fmt.Fprintf(&b, "d_module %s %s\n", shell.Quote(m.name), shell.Quote(m.probe))
	}
	for _, k := range slices.Sorted(maps.Keys(r.sysctls)) {
		fmt.Fprintf(&b, "d_sysctl %s\n", shell.Quote(k))
	}
	if len(r.files) > 0 {
		b.WriteString("d_files <<'PAICTL_DATA'\n")
		for _, f := range r.files {
			kind := "p"
			if f.secret {
				kind = "s"
			}
			fmt.Fprintf(&b, "%s\t%s\t%s\n", f.path, hash(f.body), kind)
		}
		b.WriteString("PAICTL_DATA\n")
	}
	for _, p := range r.gone {
		fmt.Fprintf(&b, "d_gone %s\n", shell.Quote(p))
	}
	for _, f := range r.blocks {
		fmt.Fprintf(&b, "d_block %s\n", shell.Quote(f.path))
	}
	if len(r.artifacts) > 0 {
		b.WriteString("d_artifacts <<'PAICTL_DATA'\n")
		for _, a := range r.artifacts {
			b.WriteString(a.path + "\n")
		}
		b.WriteString("PAICTL_DATA\n")
	}
	for _, u := range r.units {
		fmt.Fprintf(&b, "d_unit %s %s\n", shell.Quote(u.name), shell.QuoteAll(u.reads))
	}
	return b.String()
}

// diff compares a host's answer with the wanted resources.
func (r resources) diff(a answer.Answer) []Change {
	var out []Change
	add := func(c Change) { out = append(out, c) }
	for _, m := range r.modules {
		if a.Value("module", m.name) != "loaded" {
			add(Change{Action: "load", Target: "module " + m.name})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.sysctls)) {
		if have := a.Value("sysctl", k); have != r.sysctls[k] {
			add(Change{Action: "set", Target: "sysctl " + k, Detail: have + " -> " + r.sysctls[k]})
		}
	}
	for _, f := range r.files {
		if c, differs := f.diff(a); differs {
			add(c)
		}
	}
	for _, p := range r.gone {
		if a.Value("gone", p) == "there" {
			add(Change{Action: "delete", Target: p, Detail: "paictl no longer uses it"})
		}
	}
	for _, b := range r.blocks {
		have := decoded(a.Value("block", b.path))
		if string(have) != string(b.body) {
			add(Change{Action: "update", Target: b.path, Detail: "the block of paictl", Diff: unified(b.path, have, b.body)})
		}
	}
	for _, x := range r.artifacts {
		if c, differs := x.diff(a); differs {
			add(c)
		}
	}
	return append(out, r.diffUnits(a, len(out) > 0)...)
}

func (f file) diff(a answer.Answer) (Change, bool) {
	row, _ := a.Row("file", f.path)
	mode := fmt.Sprintf("%o", f.mode)
	if len(row) < 2 {
		return Change{Action: "create", Target: f.path, Detail: mode}, true
	}
	if row[1] == hash(f.body) && row[0] == mode {
		return Change{}, false
	}
	c := Change{Action: "update", Target: f.path}
	if row[0] != mode {
		c.Detail = "mode " + row[0] + " -> " + mode
	}
	if !f.secret && row[1] != hash(f.body) && len(row) > 2 {
		c.Diff = unified(f.path, decoded(row[2]), f.body)
	}
	return c, true
}

func (x artifact) diff(a answer.Answer) (Change, bool) {
	row, _ := a.Row("art", x.path)
	if len(row) < 2 {
		return Change{Action: "create", Target: x.path, Detail: x.src.Name + " " + x.src.Version}, true
	}
	mode := fmt.Sprintf("%o", x.mode)
	if row[1] == x.src.SHA256 && row[0] == mode {
		return Change{}, false
	}
	return Change{Action: "update", Target: x.path, Detail: x.src.Name + " " + x.src.Version}, true
}

// activating is systemd's word for a unit that is about to start, such as one whose program exits again and again.
const activating = "activating"

func (r resources) diffUnits(a answer.Answer, written bool) []Change {
	var out []Change
	for _, u := range r.units {
		row, _ := a.Row("unit", u.name)
		for len(row) < 3 {
			row = append(row, "absent")
		}
		enabled, active, fresh := row[0], row[1], row[2] == "fresh"
		if _, looping := a.Row("looping", u.name); looping && active == "active" {
			active = activating
		}
		switch {
		case enabled != "enabled" && enabled != "static": // a static unit is started by another program, such as udev
			out = append(out, Change{Action: "enable", Target: u.name})
		case active != "active" && u.later:
			// It doesn't run, so it needs no restart; but systemd has to read its file again, and
			// the stamp must record that it will start from the current files.
			if !fresh || written && r.touches(u, a) {
				out = append(out, Change{Action: "enable", Target: u.name, Detail: "its files change before it starts"})
			}
		case active == activating:
			out = append(out, Change{Action: "start", Target: u.name, Detail: "it crashes repeatedly"})
		case active != "active":
			out = append(out, Change{Action: "start", Target: u.name})
		case !fresh:
			out = append(out, Change{Action: "restart", Target: u.name, Detail: "its files have changed"})
		case written && r.touches(u, a):
			out = append(out, Change{Action: "restart", Target: u.name, Detail: "its files change"})
		}
	}
	return out
}

// touches reports whether applying the resources writes one of the files that a unit reads.
func (r resources) touches(u unit, a answer.Answer) bool {
	for _, f := range r.files {
		if _, differs := f.diff(a); differs && slices.Contains(u.reads, f.path) {
			return true
		}
	}
	for _, x := range r.artifacts {
		if _, differs := x.diff(a); differs && slices.Contains(u.reads, x.path) {
			return true
		}
	}
	return false
}

// script returns the shell code that makes the changes.
func (r resources) script(cs []Change) string {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	var b strings.Builder
	b.WriteString(r.setup)
	for _, m := range r.modules {
		if todo["module "+m.name] {
			fmt.Fprintf(&b, "p_module %s\n", shell.Quote(m.name))
		}
	}
	for _, f := range r.files {
		if todo[f.path] {
			b.WriteString(heredoc(fmt.Sprintf("p_file %s %o", shell.Quote(f.path), f.mode), f.body))
		}
	}
	for _, p := range r.gone {
		if todo[p] {
			fmt.Fprintf(&b, "p_gone %s\n", shell.Quote(p))
		}
	}
	for _, f := range r.blocks {
		if todo[f.path] {
			b.WriteString(heredoc("p_block "+shell.Quote(f.path), f.body))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.sysctls)) {
		if todo["sysctl "+k] {
			fmt.Fprintf(&b, "p_sysctl %s %s\n", shell.Quote(k), shell.Quote(r.sysctls[k]))
		}
	}
	for _, x := range r.artifacts {
		if todo[x.path] {
			fmt.Fprintf(&b, "p_artifact %s %o %s\n", shell.Quote(x.path), x.mode, x.src.SHA256)
		}
	}
	b.WriteString(r.between)
	for _, u := range r.units {
		if todo[u.name] {
			verb := "p_unit"
			if u.later {
				verb = "p_unit_later"
			}
			fmt.Fprintf(&b, "%s %s %s\n", verb, shell.Quote(u.name), shell.QuoteAll(u.reads))
		}
	}
	b.WriteString(r.after)
	return b.String()
}

// uploads returns the artifacts among the changes, which are staged before the script runs.
func (r resources) uploads(cs []Change) []artifact {
	var out []artifact
	for _, x := range r.artifacts {
		if slices.ContainsFunc(cs, func(c Change) bool { return c.Target == x.path }) {
			out = append(out, x)
		}
	}
	return out
}

// staged returns the path at which an upload waits until a script moves it into place.
func staged(a bundle.Artifact) string { return path.Join(stateDir, "staging", a.SHA256) }

func hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func unified(name string, have, want []byte) string {
	d, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(have)), B: difflib.SplitLines(string(want)),
		FromFile: name + " (host)", ToFile: name + " (configuration)", Context: 2,
	})
	if err != nil {
		return ""
	}
	return d
}
