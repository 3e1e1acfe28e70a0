package engine

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

// Resources holds the common resources of a phase on a node. Detection, comparison and changes are the same for all phases.
type Resources struct {
	Modules   []Module
	Sysctls   map[string]string
	Files     []File
	Gone      []string // files of earlier paictl releases to remove
	Blocks    []Block
	Artifacts []Artifact
	Units     []Unit
	// Setup, Between and After are shell code that runs if a resource changes. Setup runs first, Between runs after the files and before the units,
	// and After runs last.
	Setup, Between, After string
}

// Module is a kernel module. The path Probe exists if the module is built into the kernel.
type Module struct{ Name, Probe string }

// File is a text file whose whole content paictl manages.
type File struct {
	Path   string
	Mode   uint32
	Body   []byte
	Secret bool // never shown in a diff
}

// Block is the part of a file between two marker lines. paictl doesn't change the rest of the file.
type Block struct {
	Path string
	Body []byte
}

// Artifact is a file from the bundle with its path on the node.
type Artifact struct {
	Path string
	Mode uint32
	Src  bundle.Artifact
}

// Unit is a systemd unit that should be enabled and running. paictl restarts it when a file in Reads has changed.
type Unit struct {
	Name  string
	Reads []string
	// Later means that another program starts the unit. paictl enables the unit, and restarts it only if it is running.
	Later bool
}

// Detect returns shell code that prints the state of the resources on a host.
func (r Resources) Detect() string {
	var b strings.Builder
	for _, m := range r.Modules {
		fmt.Fprintf(&b, "d_module %s %s\n", shell.Quote(m.Name), shell.Quote(m.Probe))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Sysctls)) {
		fmt.Fprintf(&b, "d_sysctl %s\n", shell.Quote(k))
	}
	if len(r.Files) > 0 {
		b.WriteString("d_files <<'PAICTL_DATA'\n")
		for _, f := range r.Files {
			kind := "p"
			if f.Secret {
				kind = "s"
			}
			fmt.Fprintf(&b, "%s\t%s\t%s\n", f.Path, Hash(f.Body), kind)
		}
		b.WriteString("PAICTL_DATA\n")
	}
	for _, p := range r.Gone {
		fmt.Fprintf(&b, "d_gone %s\n", shell.Quote(p))
	}
	for _, f := range r.Blocks {
		fmt.Fprintf(&b, "d_block %s\n", shell.Quote(f.Path))
	}
	if len(r.Artifacts) > 0 {
		b.WriteString("d_artifacts <<'PAICTL_DATA'\n")
		for _, a := range r.Artifacts {
			b.WriteString(a.Path + "\n")
		}
		b.WriteString("PAICTL_DATA\n")
	}
	for _, u := range r.Units {
		fmt.Fprintf(&b, "d_unit %s %s\n", shell.Quote(u.Name), shell.QuoteAll(u.Reads))
	}
	return b.String()
}

// Diff compares a host's state with the desired resources and returns the changes.
func (r Resources) Diff(a answer.Answer) []Change {
	var out []Change
	add := func(c Change) { out = append(out, c) }
	for _, m := range r.Modules {
		if a.Value("module", m.Name) != "loaded" {
			add(Change{Action: "load", Target: "module " + m.Name})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.Sysctls)) {
		if have := a.Value("sysctl", k); have != r.Sysctls[k] {
			add(Change{Action: "set", Target: "sysctl " + k, Detail: have + " -> " + r.Sysctls[k]})
		}
	}
	for _, f := range r.Files {
		if c, differs := f.diff(a); differs {
			add(c)
		}
	}
	for _, p := range r.Gone {
		if a.Value("gone", p) == "there" {
			add(Change{Action: "delete", Target: p, Detail: "paictl no longer uses it"})
		}
	}
	for _, b := range r.Blocks {
		have := Decoded(a.Value("block", b.Path))
		if string(have) != string(b.Body) {
			add(Change{Action: "update", Target: b.Path, Detail: "the block of paictl", Diff: Unified(b.Path, have, b.Body)})
		}
	}
	for _, x := range r.Artifacts {
		if c, differs := x.diff(a); differs {
			add(c)
		}
	}
	return append(out, r.DiffUnits(a, len(out) > 0)...)
}

func (f File) diff(a answer.Answer) (Change, bool) {
	row, _ := a.Row("file", f.Path)
	mode := fmt.Sprintf("%o", f.Mode)
	if len(row) < 2 {
		return Change{Action: "create", Target: f.Path, Detail: mode}, true
	}
	if row[1] == Hash(f.Body) && row[0] == mode {
		return Change{}, false
	}
	c := Change{Action: "update", Target: f.Path}
	if row[0] != mode {
		c.Detail = "mode " + row[0] + " -> " + mode
	}
	if !f.Secret && row[1] != Hash(f.Body) && len(row) > 2 {
		c.Diff = Unified(f.Path, Decoded(row[2]), f.Body)
	}
	return c, true
}

func (x Artifact) diff(a answer.Answer) (Change, bool) {
	row, _ := a.Row("art", x.Path)
	if len(row) < 2 {
		return Change{Action: "create", Target: x.Path, Detail: x.Src.Name + " " + x.Src.Version}, true
	}
	mode := fmt.Sprintf("%o", x.Mode)
	if row[1] == x.Src.SHA256 && row[0] == mode {
		return Change{}, false
	}
	return Change{Action: "update", Target: x.Path, Detail: x.Src.Name + " " + x.Src.Version}, true
}

// activating is systemd's state of a unit that is starting. A unit whose program exits repeatedly is also in this state.
const activating = "activating"

// DiffUnits returns the changes to systemd units. The argument written means that other resources also change.
func (r Resources) DiffUnits(a answer.Answer, written bool) []Change {
	var out []Change
	for _, u := range r.Units {
		row, _ := a.Row("unit", u.Name)
		for len(row) < 3 {
			row = append(row, "absent")
		}
		enabled, active, fresh := row[0], row[1], row[2] == "fresh"
		if _, looping := a.Row("looping", u.Name); looping && active == "active" {
			active = activating
		}
		switch {
		case enabled != "enabled" && enabled != "static": // another program, such as udev, starts a static unit
			out = append(out, Change{Action: "enable", Target: u.Name})
		case active != "active" && u.Later:
			// The unit isn't running, so it needs no restart. But systemd has to reload the unit's file, and the stamp must record that the unit will
			// start with the current files.
			if !fresh || written && r.touches(u, a) {
				out = append(out, Change{Action: "enable", Target: u.Name, Detail: "its files change before it starts"})
			}
		case active == activating:
			out = append(out, Change{Action: "start", Target: u.Name, Detail: "it crashes repeatedly"})
		case active != "active":
			out = append(out, Change{Action: "start", Target: u.Name})
		case !fresh:
			out = append(out, Change{Action: "restart", Target: u.Name, Detail: "its files have changed"})
		case written && r.touches(u, a):
			out = append(out, Change{Action: "restart", Target: u.Name, Detail: "its files change"})
		}
	}
	return out
}

func (r Resources) touches(u Unit, a answer.Answer) bool {
	for _, f := range r.Files {
		if _, differs := f.diff(a); differs && slices.Contains(u.Reads, f.Path) {
			return true
		}
	}
	for _, x := range r.Artifacts {
		if _, differs := x.diff(a); differs && slices.Contains(u.Reads, x.Path) {
			return true
		}
	}
	return false
}

// Script returns shell code that makes the changes.
func (r Resources) Script(cs []Change) string {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	var b strings.Builder
	b.WriteString(r.Setup)
	for _, m := range r.Modules {
		if todo["module "+m.Name] {
			fmt.Fprintf(&b, "p_module %s\n", shell.Quote(m.Name))
		}
	}
	for _, f := range r.Files {
		if todo[f.Path] {
			b.WriteString(Heredoc(fmt.Sprintf("p_file %s %o", shell.Quote(f.Path), f.Mode), f.Body))
		}
	}
	for _, p := range r.Gone {
		if todo[p] {
			fmt.Fprintf(&b, "p_gone %s\n", shell.Quote(p))
		}
	}
	for _, f := range r.Blocks {
		if todo[f.Path] {
			b.WriteString(Heredoc("p_block "+shell.Quote(f.Path), f.Body))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.Sysctls)) {
		if todo["sysctl "+k] {
			fmt.Fprintf(&b, "p_sysctl %s %s\n", shell.Quote(k), shell.Quote(r.Sysctls[k]))
		}
	}
	for _, x := range r.Artifacts {
		if todo[x.Path] {
			fmt.Fprintf(&b, "p_artifact %s %o %s\n", shell.Quote(x.Path), x.Mode, x.Src.SHA256)
		}
	}
	b.WriteString(r.Between)
	for _, u := range r.Units {
		if todo[u.Name] {
			verb := "p_unit"
			if u.Later {
				verb = "p_unit_later"
			}
			fmt.Fprintf(&b, "%s %s %s\n", verb, shell.Quote(u.Name), shell.QuoteAll(u.Reads))
		}
	}
	b.WriteString(r.After)
	return b.String()
}

// Uploads returns the artifacts that the changes need. The script expects them in the staging folder.
func (r Resources) Uploads(cs []Change) []Artifact {
	var out []Artifact
	for _, x := range r.Artifacts {
		if slices.ContainsFunc(cs, func(c Change) bool { return c.Target == x.Path }) {
			out = append(out, x)
		}
	}
	return out
}

// Staged returns the path of an uploaded artifact on a node, before a script installs it.
func Staged(a bundle.Artifact) string { return path.Join(StateDir, "staging", a.SHA256) }

// Hash returns the SHA-256 of b in hexadecimal.
func Hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// Unified returns the difference between two texts in the format of diff -u, or "" if the comparison fails.
func Unified(name string, have, want []byte) string {
	d, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(have)), B: difflib.SplitLines(string(want)),
		FromFile: name + " (host)", ToFile: name + " (configuration)", Context: 2,
	})
	if err != nil {
		return ""
	}
	return d
}
