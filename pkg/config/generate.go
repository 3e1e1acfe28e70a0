package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// Generation holds the options for generating a configuration from a quick-start file.
type Generation struct {
	QuickStart string // path of the file
	OutDir     string
	Force      bool // replace existing files
	Offline    bool // query no machine
	DryRun     bool // write nothing
	// Timeout limits the time for one machine. Zero means 60 s.
	Timeout time.Duration
	// Reference contains comments that document the sections of services. It is appended to services-configuration.yaml.
	Reference []byte
	// Checks are additional rules for the generated files.
	Checks []Check
	// Dialer connects to the machines. It is not used if Offline is set.
	Dialer ssh.Dialer
	// Images returns sections of services that contain the images in a bundle's folder. Settings in the quick-start file override these sections.
	// Images may be nil.
	Images func(bundle string) map[string]map[string]any
	// Progress is called after each query of a machine. It may be nil.
	Progress func(done, total int, host string, err error)
}

// Generated is the result of Generate.
type Generated struct {
	Cluster  *Cluster
	Files    map[string][]byte       // by name, with secrets
	Facts    map[string]layout.Facts // by address; nil offline
	Warnings Findings

	reference []byte
}

// Generate generates the four files. It writes either all files, or no file and returns an error. The error is of type Findings, a *DiscoveryError,
// or an error about existing files.
func Generate(ctx context.Context, g Generation) (*Generated, error) {
	q, warnings, err := LoadQuickStart(g.QuickStart)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, q.checkFiles(g.Offline)...)
	if g.Images != nil && q.Bundle != "" {
		q.nameImages(g.Images(resolvePath(q.dir, q.Bundle)))
	}
	if err := warnings.Err(); err != nil {
		return nil, err
	}
	if !g.DryRun && !g.Force {
		// Check for existing files first, because the queries of the machines may take a while.
		if err := refuseExisting(g.OutDir); err != nil {
			return nil, err
		}
	}
	var facts map[string]layout.Facts
	if !g.Offline {
		// Report mistakes that don't depend on the machines' facts before the machines are queried.
		if _, _, err := q.assemble(nil, g.OutDir, g.Checks); err != nil {
			return nil, err
		}
		facts, err = Discover(ctx, g.Dialer, q.Targets(), g.Timeout, g.Progress)
		if failed, ok := errors.AsType[*DiscoveryError](err); ok {
			return nil, hint.Wrap(failed, "nothing was written; repair these machines, or remove them from "+g.QuickStart+", and run again (--offline connects to no machine)")
		}
		if err != nil {
			return nil, err
		}
	}
	out, err := q.generate(facts, g)
	if err != nil {
		return nil, err
	}
	out.Warnings = append(warnings, out.Warnings...)
	return out, g.write(out)
}

func (g Generation) write(out *Generated) error {
	if g.DryRun {
		return nil
	}
	return WriteFolder(g.OutDir, out.Files, out.Cluster.HoldsSecret, g.Force)
}

func refuseExisting(dir string) error {
	files := map[string][]byte{}
	for _, name := range Files() {
		files[name] = nil
	}
	if len(existingFiles(dir, files)) == 0 {
		return nil
	}
	return WriteFolder(dir, files, func(string) bool { return true }, false)
}

func (q *QuickStart) generate(facts map[string]layout.Facts, g Generation) (*Generated, error) {
	c, warnings, err := q.assemble(facts, g.OutDir, g.Checks)
	if err != nil {
		return nil, err
	}
	return g.render(&Generated{Cluster: c, Facts: facts, Warnings: warnings})
}

func (g Generation) render(out *Generated) (*Generated, error) {
	files, err := out.Cluster.Render()
	if err != nil {
		return nil, err
	}
	out.reference = g.Reference
	out.Files = withReference(files, g.Reference)
	return out, nil
}

func withReference(files map[string][]byte, reference []byte) map[string][]byte {
	if len(reference) > 0 {
		files[ServicesFile] = slices.Concat(files[ServicesFile], []byte("\n"), reference)
	}
	return files
}

// Masked returns the files with masked secrets. The argument secrets contains additional secret paths in services-configuration.yaml, as for
// Cluster.Masked.
func (g *Generated) Masked(secrets ...strictyaml.Path) (map[string][]byte, error) {
	files, err := g.Cluster.Masked(secrets...).Render()
	if err != nil {
		return nil, err
	}
	return withReference(files, g.reference), nil
}

func (q *QuickStart) assemble(facts map[string]layout.Facts, outDir string, checks []Check) (*Cluster, Findings, error) {
	c, findings := q.build(facts, outDir)
	findings = append(findings, factsFindings(c, facts)...)
	if err := findings.Err(); err != nil {
		return nil, nil, err
	}
	rules := Validate(c, checks...)
	if facts == nil {
		rules = withoutRule(rules, "layout/not-discovered", "kubernetes/no-dns")
	}
	findings = append(findings, q.inOwnTerms(rules)...)
	if err := findings.Err(); err != nil {
		return nil, nil, err
	}
	return c, findings.Warnings(), nil
}

// inOwnTerms changes findings about generated files so that they refer to fields of the quick-start file. The user hasn't seen the generated files
// yet.
func (q *QuickStart) inOwnTerms(fs Findings) Findings {
	for i := range fs {
		field, i0 := fs[i].Field, -1
		p := fieldPath{}
		if rest, ok := strings.CutPrefix(field, "kubernetes."); ok {
			key := strings.FieldsFunc(rest, func(r rune) bool { return r == '.' || r == '[' })[0]
			p, field = fieldPath{key}, rest
			if key == "cluster-dns" {
				p, field = fieldPath{"dns"}, "dns"
			}
		} else if n, _ := fmt.Sscanf(field, "machine-list[%d]", &i0); n == 1 {
			p, field = fieldPath{"machines", i0}, strings.Replace(field, "machine-list", "machines", 1)
			if before, key, ok := strings.Cut(field, ".ssh."); ok {
				p, field = p.With("ssh-"+key), before+".ssh-"+key
			}
		} else if key, ok := strings.CutPrefix(field, "ssh."); ok {
			p, field = fieldPath{"ssh-" + key}, "ssh-"+key
		} else if field == "machine-list" {
			p, field = fieldPath{"machines"}, "machines"
		}
		if len(p) == 0 || !q.doc.Has(p[0]) {
			continue
		}
		fs[i].File, fs[i].Field = q.doc.File, field
		fs[i].Line, fs[i].Column, _ = q.doc.Position(p)
	}
	return fs
}

func withoutRule(fs Findings, rules ...string) Findings {
	var out Findings
	for _, f := range fs {
		keep := true
		for _, r := range rules {
			keep = keep && f.Rule != r
		}
		if keep {
			out = append(out, f)
		}
	}
	return out
}

// checkFiles reports key files that don't exist. With --offline, a missing file is only a warning, because "cluster up" may run on another machine
// that has the keys.
func (q *QuickStart) checkFiles(offline bool) Findings {
	r := &reporter{file: q.doc.File, doc: q.doc}
	check := func(p fieldPath, file string) {
		if file == "" {
			return
		}
		_, err := os.Stat(resolvePath(q.dir, file))
		switch {
		case err == nil:
		case offline:
			r.warn(p, "quick-start/no-file", fmt.Sprintf("there is no file %s here", resolvePath(q.dir, file)), "")
		case errors.Is(err, fs.ErrNotExist):
			r.fail(p, "quick-start/no-file", fmt.Sprintf("there is no file %s", resolvePath(q.dir, file)), "a relative path starts in the folder of the quick-start file, "+filepath.Clean(q.dir))
		default:
			r.fail(p, "quick-start/no-file", fmt.Sprintf("%s can't be read: %v", resolvePath(q.dir, file), cause(err)), "check the path, and the permissions of the folders above it")
		}
	}
	// A known_hosts file may be missing, because ssh creates the file when the user accepts the key of a host.
	check(fieldPath{"ssh-keyfile-path"}, q.SSHKeyFile)
	for i, m := range q.Machines {
		check(fieldPath{"machines", i, "ssh-keyfile-path"}, m.SSHKeyFile)
	}
	return r.findings
}

// factsFindings warns about facts of the machines that will cause problems in "cluster up".
func factsFindings(c *Cluster, facts map[string]layout.Facts) Findings {
	r := &reporter{file: filepath.Join(c.Dir, LayoutFile)}
	for i, m := range c.Layout.MachineList {
		f, ok := facts[m.HostIP]
		if !ok {
			continue
		}
		p := fieldPath{"machine-list", i}
		switch {
		case f.SudoError != nil:
			r.warn(p, "machine/sudo", fmt.Sprintf("%s: the login user cannot become root: %v", m.Hostname, f.SudoError), cmp.Or(hint.Of(f.SudoError), "log in as root, or give the user the rights"))
		case f.Sudo == "refused" || f.Sudo == "missing":
			r.warn(p, "machine/sudo", fmt.Sprintf("%s: the login user cannot become root (sudo %s)", m.Hostname, f.Sudo), "log in as root, or install sudo and add the user to its group")
		}
		if f.DriverError != "" && len(f.PCIGPUs) > 0 {
			r.warn(p, "machine/gpu-driver", fmt.Sprintf("%s: nvidia-smi does not work: %s", m.Hostname, f.DriverError), "repair the driver before the GPUs are used; the model was read from the PCI bus")
		}
		if f.DriverError == "" && f.Driver == "" && countVendor(f.PCIGPUs, "10de") > 0 {
			r.warn(p, "machine/gpu-driver", m.Hostname+": it has NVIDIA GPUs, but no driver"+obstacles(f), "install NVIDIA's driver before the GPUs are used; the model was read from the PCI bus")
		}
		if nvidia := countVendor(f.PCIGPUs, "10de"); len(f.NVIDIA) > 0 && nvidia > len(f.NVIDIA) {
			r.warn(p, "machine/gpu-lost", fmt.Sprintf("%s: the driver sees %d of %d NVIDIA GPUs", m.Hostname, len(f.NVIDIA), nvidia), "look for Xid errors in dmesg; generate again when the GPU is back")
		}
	}
	return r.findings
}

// obstacles describes why the installation of NVIDIA's driver may fail on a machine, or returns "".
func obstacles(f layout.Facts) string {
	var out []string
	if f.SecureBoot == "on" {
		out = append(out, "Secure Boot is on: a kernel module that isn't signed can't be loaded")
	}
	if f.Nouveau {
		out = append(out, "nouveau is loaded")
	}
	if !f.KernelHeaders {
		out = append(out, "the headers of its kernel are missing")
	}
	if len(f.NVSwitches) > 0 {
		needs := "it has NVSwitches, which need the fabric manager of the driver's version"
		if f.NVLink5() {
			needs += " and nvlsm"
		}
		out = append(out, needs)
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}

func countVendor(devices []layout.PCIDevice, vendor string) int {
	n := 0
	for _, d := range devices {
		if d.Vendor == vendor {
			n++
		}
	}
	return n
}

// Path returns the path of the file with the given name.
func (g *Generated) Path(name string) string { return filepath.Join(g.Cluster.Dir, name) }

// Summary returns text with the number of machines per SKU.
func (g *Generated) Summary() string {
	l := g.Cluster.Layout
	count := map[string]int{}
	for _, m := range l.MachineList {
		count[m.SKU]++
	}
	var parts []string
	for _, name := range skuNames(l) {
		if g.Facts == nil && g.Cluster.IsManaged() {
			break
		}
		parts = append(parts, fmt.Sprintf("%d × %s", count[name], name))
	}
	text := fmt.Sprintf("machines: %d, masters: %d", len(l.MachineList), len(l.WithRole(layout.RoleMaster)))
	if len(parts) > 0 {
		text += "; hardware: " + strings.Join(parts, ", ")
	}
	return text
}

// NextSteps returns text with the next steps after the generation of a configuration.
func (g *Generated) NextSteps() string {
	dir := hint.Quote(g.Cluster.Dir)
	if !g.Cluster.IsManaged() {
		return fmt.Sprintf("check the roles in %s, then run: paictl config push -p %s", g.Path(LayoutFile), dir)
	}
	if g.Facts != nil {
		return "next: paictl cluster up -p " + dir
	}
	open := "the SKU"
	if slices.ContainsFunc(g.Cluster.Layout.MachineList, func(m machine) bool { return m.Hostname == nameFromAddress(m.HostIP) }) {
		open += " and the host names"
	}
	text := fmt.Sprintf("no machine was contacted: fill in %s in %s", open, g.Path(LayoutFile))
	if len(g.Cluster.Kubernetes.Kubernetes.ClusterDNS) == 0 {
		text += " and cluster-dns in " + g.Path(KubernetesFile)
	}
	return text + ",\n  then run: paictl config validate -p " + dir
}
