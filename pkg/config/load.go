package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
)

// Files returns the names of the four files, in the order in which they are read.
func Files() []string { return []string{LayoutFile, KubernetesFile, RolesFile, ServicesFile} }

// Load reads the four files of a configuration folder strictly, and fills in defaults. It returns syntax and type errors as Findings. It doesn't
// apply the rules of Validate, unlike LoadValid.
func Load(dir string) (*Cluster, error) {
	data, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	return Parse(dir, data)
}

// LoadValid loads a folder and applies all rules, including the given checks. It returns the warnings. If a rule is violated, the error is of type
// Findings.
func LoadValid(dir string, checks ...Check) (*Cluster, Findings, error) {
	c, err := Load(dir)
	if err != nil {
		return nil, nil, err
	}
	findings := Validate(c, checks...)
	if err := findings.Err(); err != nil {
		return nil, nil, err
	}
	return c, findings, nil
}

// LoadReadable loads a folder for a read-only command. It returns mistakes as findings, and the cluster without the affected parts. If a mistake
// may hide machines, it returns the mistakes as an error of type Findings.
func LoadReadable(dir string, checks ...Check) (*Cluster, Findings, error) {
	data, err := readFiles(dir)
	if err != nil {
		return nil, nil, err
	}
	c, form := parse(dir, data)
	c.complete()
	findings := form
	if form.Err() == nil {
		findings = append(findings, Validate(c, checks...)...)
	} else { // most rules would report the mistakes of form again
		findings = append(findings, slices.DeleteFunc(Validate(c), func(f Finding) bool { return !hidesMachines(f) })...)
	}
	if slices.ContainsFunc(findings, hidesMachines) {
		return nil, nil, findings.Err()
	}
	return c, findings, nil
}

// hidesMachines reports whether a mistake may hide machines or their connection settings.
func hidesMachines(f Finding) bool {
	if f.Severity != strictyaml.Error {
		return false
	}
	section, _, _ := strings.Cut(f.Field, ".")
	switch filepath.Base(f.File) {
	case LayoutFile:
		switch f.Rule {
		case "layout/unknown-sku", "layout/no-roles", "layout/unknown-role", "layout/duplicate-role", "layout/label", "layout/taint", "layout/gpus-for-pods":
			return false
		}
		return section != "machine-sku"
	case KubernetesFile:
		return section != "kubernetes" && section != "extra"
	}
	return false
}

func readFiles(dir string) (map[string][]byte, error) {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return nil, hint.Errorf(nameFolder, "%s is a file, not a configuration folder", dir)
	case err != nil && strings.Contains(dir, "://"):
		return nil, hint.Errorf(nameFolder+"; config push and config diff also read a repository: --from git::"+secret.Address(strings.TrimPrefix(dir, "git::")), "%s is an address, not a folder", secret.Address(dir))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, hint.Errorf(nameFolder+"; to make a new one: paictl config generate -i quick-start.yaml -o "+hint.Quote(dir), "there is no configuration folder %s", dir)
	case err != nil:
		return nil, hint.Wrap(fmt.Errorf("read the configuration: %w", err), "check the permissions of the folder and of those above it, or name another one with -p or PAICTL_CONFIG")
	}
	if g, err := Detect(dir); err == nil && g != Current && g != Unknown {
		return nil, hint.Errorf(fmt.Sprintf("run: paictl config migrate -p %s -o NEW-FOLDER", hint.Quote(dir)),
			"the configuration in %s has %s", dir, g)
	}
	data := map[string][]byte{}
	var missing []string
	for _, name := range Files() {
		b, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("read the configuration: %w", err)
		default:
			data[name] = b
		}
	}
	if len(missing) == len(Files()) {
		return nil, hint.Errorf(nameFolder+"; to make a new one: paictl config generate -i quick-start.yaml -o ./cluster",
			"there is no configuration in %s: it has no %s", place(dir), Files()[0])
	}
	if len(missing) > 0 {
		return nil, hint.Errorf(nameFolder+", or make all four with: paictl config generate -i quick-start.yaml -o "+hint.Quote(dir)+
			" (-f replaces existing files)", "%s is missing in %s", strings.Join(missing, ", "), place(dir))
	}
	return data, nil
}

// nameFolder is the remedy if a user has given the wrong folder.
const nameFolder = "name the configuration's folder with -p or PAICTL_CONFIG"

// place returns a folder's path in a form that users recognize.
func place(dir string) string {
	if filepath.Clean(dir) != "." {
		return dir
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return "the current folder, " + abs
	}
	return dir
}

// Parse decodes the texts of the four files. The argument dir is the folder of the files. Messages and relative paths need the folder.
func Parse(dir string, data map[string][]byte) (*Cluster, error) {
	c, findings := parse(dir, data)
	if findings.Err() != nil {
		// The names of components can be checked even if the files contain syntax or type errors.
		k := &checker{c: c, roles: &reporter{file: filepath.Join(dir, RolesFile), doc: c.docs[RolesFile]}}
		k.checkRoles()
		return nil, append(findings, k.roles.findings.Errors()...).Err()
	}
	c.complete()
	return c, nil
}

func parse(dir string, data map[string][]byte) (*Cluster, Findings) {
	c := &Cluster{Dir: dir, docs: map[string]*strictyaml.Document{}}
	targets := map[string]any{LayoutFile: &c.Layout, KubernetesFile: &c.Kubernetes, RolesFile: &c.Roles, ServicesFile: &c.Services}
	var findings Findings
	for _, name := range Files() {
		doc, found := strictyaml.Decode(filepath.Join(dir, name), data[name], targets[name])
		c.docs[name] = doc
		findings = append(findings, found...)
		findings = append(findings, checkKind(doc, name)...)
	}
	return c, findings
}

func (c *Cluster) complete() {
	c.fillDefaults()
	c.Kubernetes.Kubernetes.Bundle = c.resolve(c.Kubernetes.Kubernetes.Bundle)
}

func kinds() map[string]string {
	return map[string]string{LayoutFile: layout.Kind, KubernetesFile: KindKubernetes, RolesFile: KindRoles, ServicesFile: KindServices}
}

// checkKind reports a file of another kind, or with a version that this paictl doesn't support.
func checkKind(doc *strictyaml.Document, name string) Findings {
	r := &reporter{file: doc.File, doc: doc}
	if v := doc.Scalar("apiVersion"); v != "" && v != APIVersion {
		r.fail(fieldPath{"apiVersion"}, "file/api-version", fmt.Sprintf("%q is not a version that this paictl supports", v), "write "+APIVersion+", or use the paictl that wrote the file")
	}
	if k := doc.Scalar("kind"); k != "" && k != kinds()[name] {
		r.fail(fieldPath{"kind"}, "file/kind", fmt.Sprintf("%q is not the kind of this file", k), "write "+kinds()[name])
	}
	return r.findings
}

// resolve converts a path in the configuration to a path that the process can open. ~ is the home of the operator. Relative paths begin in the
// configuration folder.
func (c *Cluster) resolve(p string) string { return resolvePath(c.Dir, p) }

func resolvePath(dir, p string) string {
	switch {
	case p == "" || filepath.IsAbs(p):
		return p
	case p == "~" || strings.HasPrefix(p, "~/"):
		home, err := os.UserHomeDir()
		if err != nil {
			return p
		}
		return filepath.Join(home, p[1:])
	}
	return filepath.Join(dir, p)
}

// Target returns the SSH target of a machine.
func (c *Cluster) Target(m layout.Machine) ssh.Target {
	s := c.Layout.SSHFor(m)
	name := m.Hostname
	if name == "" {
		name = m.HostIP
	}
	return ssh.Target{
		Name: name, Address: m.HostIP, Port: s.Port, User: s.Username, Password: s.Password,
		KeyFile: c.resolve(s.KeyFile), JumpHosts: s.JumpHost, KnownHosts: c.resolve(s.KnownHosts),
	}
}
