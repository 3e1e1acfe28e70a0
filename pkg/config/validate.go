package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// checker applies rules to a configuration. It has one reporter per file.
type checker struct {
	c       *Cluster
	layout  *reporter
	kube    *reporter
	roles   *reporter
	service *reporter
	quick   *reporter // nil without a quick-start file
	// extra is the reporter for the section extra. extraAt is the path of that section.
	extra   *reporter
	extraAt fieldPath
}

// place returns the reporter and the path for findings about a section of kubernetes-configuration.yaml. If the quick-start file contains the
// section, findings refer to the quick-start file.
func (k *checker) place(section string) (*reporter, fieldPath) {
	if k.quick != nil && k.quick.doc.Has(section) {
		return k.quick, where(section)
	}
	return k.kube, where("kubernetes", section)
}

// Check applies the rules of another package, such as the rules of charts for the sections of services. It creates findings with Cluster.Finding.
type Check func(*Cluster) Findings

// Finding returns a finding about a field of one of the four files, with its position. If a quick-start setting caused the finding, the position is
// in the quick-start file.
func (c *Cluster) Finding(file string, severity strictyaml.Severity, p strictyaml.Path, rule, message, remedy string) Finding {
	r := &reporter{file: filepath.Join(c.Dir, file), doc: c.docs[file]}
	if q := c.quick; q != nil && file == ServicesFile && len(p) > 0 && q.doc.Has("services", p[0]) {
		r.file, r.doc, p = q.doc.File, q.doc, append(fieldPath{"services"}, p...)
	}
	r.add(severity, p, rule, message, remedy)
	f := r.findings[0]
	_, _, written := r.doc.Position(p[:min(1, len(p))])
	f.Derived = !written
	return f
}

// RuleVersion is the rule of findings about kubernetes.version.
const RuleVersion = "kubernetes/version"

// Validate applies all rules to a configuration. It returns all mistakes and doubtful settings, in the order of files and lines.
func Validate(c *Cluster, checks ...Check) Findings {
	rep := func(name string) *reporter {
		return &reporter{file: filepath.Join(c.Dir, name), doc: c.docs[name]}
	}
	k := &checker{c: c, layout: rep(LayoutFile), kube: rep(KubernetesFile), roles: rep(RolesFile), service: rep(ServicesFile)}
	if c.quick != nil {
		k.quick = &reporter{file: c.quick.doc.File, doc: c.quick.doc}
	}
	k.extra, k.extraAt = k.place("extra")
	k.checkSKUs()
	k.checkMachineList()
	k.checkGPUVendors()
	k.checkSSH(k.layout, fieldPath{"ssh"}, c.Layout.SSH)
	k.checkRoles()
	if c.IsManaged() {
		k.checkControlPlane()
		k.checkKubernetes()
		k.checkNetworks()
		k.checkProxy()
		k.checkGPUDriver()
		k.checkExtra()
	} else {
		k.checkExisting()
	}
	k.checkServices()
	k.checkMasked()
	k.checkPermissions()
	var out Findings
	reporters := []*reporter{k.layout, k.kube, k.roles, k.service}
	if k.quick != nil {
		reporters = append(reporters, k.quick)
	}
	for _, r := range reporters {
		r.findings.Sort()
		out = append(out, r.findings...)
	}
	for _, check := range checks {
		found := check(c)
		found.Sort()
		out = append(out, found...)
	}
	return withoutConsequences(out)
}

// withoutConsequences drops mistakes in derived values if the findings contain other mistakes. The other mistakes are the cause, and the files
// don't contain the derived fields.
func withoutConsequences(fs Findings) Findings {
	if !slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == strictyaml.Error && !f.Derived }) {
		return fs
	}
	return slices.DeleteFunc(fs, func(f Finding) bool { return f.Severity == strictyaml.Error && f.Derived })
}

// ValidateDir loads a folder and applies all rules. It also returns syntax and type errors as findings. err is set only if the folder can't be read.
func ValidateDir(dir string, checks ...Check) (findings Findings, err error) {
	c, err := Load(dir)
	if fs, ok := err.(Findings); ok { //nolint:errorlint // Load returns Findings bare
		return fs, nil
	}
	if err != nil {
		return nil, err
	}
	return Validate(c, checks...), nil
}

// checkMasked reports masked values, which come from a copy of the files without secrets. paictl would try the masks as passwords, and the attempts
// may lock accounts.
func (k *checker) checkMasked() {
	for _, r := range []*reporter{k.layout, k.kube, k.service} {
		for _, p := range r.doc.Find(secret.Mask) {
			r.fail(p, "file/masked", "the value is masked: these files are a copy without secrets", "write the value itself, or get the files with their secrets: paictl config pull -o DIR")
		}
	}
}

func (k *checker) checkPermissions() {
	for name, r := range map[string]*reporter{LayoutFile: k.layout, KubernetesFile: k.kube} {
		if r.doc == nil || !k.c.HoldsSecret(name) {
			continue
		}
		info, err := os.Stat(r.file)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			r.warn(nil, "file/permissions", fmt.Sprintf("the file contains a password, but others may read it (mode %04o)", info.Mode().Perm()), "run: chmod 600 "+hint.Quote(r.file))
		}
	}
}

// has reports whether a file contains a field. If doc is nil because the configuration was generated, it returns set. set means that the value isn't
// empty.
func has(doc *strictyaml.Document, set bool, p ...any) bool {
	if doc == nil {
		return set
	}
	return doc.Has(p...)
}
