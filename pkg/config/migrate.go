package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// oldConfigFile is the file with settings for SSH and kubespray in OpenPAI 1.5 and later.
const oldConfigFile = "config.yaml"

// Migration is the result of Migrate.
type Migration struct {
	From     Format
	Cluster  *Cluster
	Files    map[string][]byte
	Notes    []MigrationNote
	Warnings Findings // Validate's warnings about the result
}

// MigrationNote describes a field that the migration has changed or dropped.
type MigrationNote struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Field  string `json:"field"`
	Value  string `json:"value,omitempty"` // masked if it is a secret
	Action string `json:"action"`          // changed, dropped
	Reason string `json:"reason"`
}

// Actions of a MigrationNote.
const (
	noteChanged = "changed"
	noteDropped = "dropped"
)

// Migrate converts a folder in one of OpenPAI's formats. Each value of the old files is either in the result or in Notes with the reason. reference
// is appended to the new services-configuration.yaml. The argument checks contains additional rules for the result.
func Migrate(oldDir, newDir string, reference []byte, checks ...Check) (*Migration, error) {
	format, err := Detect(oldDir)
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return nil, hint.Wrap(fmt.Errorf("find the old configuration: %w", err), "give the folder with the original's layout.yaml with -p")
	case err != nil:
		return nil, err
	case format == Current:
		return nil, hint.Errorf("check it with: paictl config validate -p "+hint.Quote(oldDir), "the configuration in %s already has %s", oldDir, format)
	case format == Unknown:
		return nil, hint.Errorf("give the folder with the original's layout.yaml with -p; a layout of OpenPAI has machines with pai-master or pai-worker, or in older releases with k8s-role",
			"%s has %s", filepath.Join(oldDir, LayoutFile), format)
	case format == G0, format == G15:
		return nil, hint.Errorf("write a quick-start file with the machines' addresses and run: paictl config generate",
			"the configuration in %s has %s, which has no layout.yaml", oldDir, format)
	}
	m := &migrator{dir: oldDir, format: format, docs: map[string]*oldDoc{}, c: &Cluster{Dir: newDir, Roles: DefaultRoles()}}
	if err := m.read(); err != nil {
		return nil, err
	}
	m.layout()
	if format == G1 {
		m.kubernetes()
	}
	m.kubespray()
	m.services()
	m.finish()
	out := &Migration{From: format, Cluster: m.c, Notes: m.notes}
	findings := Validate(m.c, checks...)
	if err := findings.Err(); err != nil {
		if old := m.inOldTerms(checks); old != nil {
			err = old
		}
		return nil, err
	}
	out.Warnings = findings
	if out.Files, err = m.c.Render(); err != nil {
		return nil, err
	}
	out.Files = withReference(out.Files, reference)
	return out, nil
}

// inOldTerms returns the mistakes in the result with positions in the old files, because the new files aren't written yet.
func (m *migrator) inOldTerms(checks []Check) error {
	old := *m.c
	old.Dir, old.docs = m.dir, map[string]*strictyaml.Document{}
	for name, d := range m.docs {
		old.docs[name] = d.doc
	}
	return Validate(&old, checks...).Errors().Err()
}

type migrator struct {
	dir    string
	format Format
	docs   map[string]*oldDoc
	c      *Cluster
	notes  []MigrationNote
}

// oldDoc is one old file. It records the paths of migrated fields.
type oldDoc struct {
	name  string
	doc   *strictyaml.Document
	root  map[string]any
	taken map[string]bool
}

func (m *migrator) read() error {
	for _, name := range []string{LayoutFile, KubernetesFile, RolesFile, ServicesFile, oldConfigFile} {
		file := filepath.Join(m.dir, name)
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			m.docs[name] = &oldDoc{name: name, root: map[string]any{}, taken: map[string]bool{}}
			continue
		}
		if err != nil {
			return fmt.Errorf("read the old configuration: %w", err)
		}
		root := map[string]any{}
		doc, findings := strictyaml.Parse(file, data)
		if len(findings) == 1 && findings[0].Rule == "yaml/empty" {
			findings = nil
		}
		// OpenPAI parses a number with a leading 0 as Python does, so such a number is valid here. Text fields keep the original text.
		findings = append(findings, withoutRule(doc.Decode(&root), strictyaml.RuleNumber)...)
		if err := findings.Err(); err != nil {
			return err
		}
		m.docs[name] = &oldDoc{name: name, doc: doc, root: root, taken: map[string]bool{}}
	}
	return nil
}

// get returns a value in an old file, or nil if the file doesn't contain the field.
func (d *oldDoc) get(steps ...any) any {
	var v any = d.root
	for _, s := range steps {
		switch x := v.(type) {
		case map[string]any:
			key, _ := s.(string)
			v = x[key]
		case []any:
			i, ok := s.(int)
			if !ok || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// take returns a value in an old file. It marks the value and all values inside it as migrated.
func (d *oldDoc) take(steps ...any) any {
	d.taken[fieldPath(steps).String()] = true
	return d.get(steps...)
}

// text returns the original text of a scalar, or "" if the value isn't a scalar. It marks the value as migrated.
func (d *oldDoc) text(steps ...any) string {
	switch d.take(steps...).(type) {
	case nil, map[string]any, []any:
		return ""
	}
	return d.doc.Scalar(steps...)
}

func (d *oldDoc) number(steps ...any) int {
	switch v := d.take(steps...).(type) {
	case int:
		return v
	case string:
		n := 0
		if _, err := fmt.Sscanf(v, "%d", &n); err == nil {
			return n
		}
	}
	return 0
}

func (d *oldDoc) list(steps ...any) []any {
	l, _ := d.get(steps...).([]any)
	return l
}

func (d *oldDoc) keys(steps ...any) []string {
	v, _ := d.get(steps...).(map[string]any)
	return slices.Sorted(maps.Keys(v))
}

func (m *migrator) note(d *oldDoc, action, reason string, steps ...any) {
	p := fieldPath(steps)
	d.taken[p.String()] = true
	value := ""
	switch v := d.get(steps...).(type) {
	case nil, map[string]any, []any:
	default:
		value = fmt.Sprint(v)
		if s := d.doc.Scalar(steps...); s != "" {
			value = s
		}
		if first, _, more := strings.Cut(value, "\n"); more {
			value = first + " …"
		}
		for _, s := range steps {
			if key, ok := s.(string); ok && looksSecret(key) {
				value = secret.Mask
			}
		}
	}
	line, _, _ := d.doc.Position(p)
	m.notes = append(m.notes, MigrationNote{File: d.name, Line: line, Field: p.String(), Value: value, Action: action, Reason: reason})
}

func (m *migrator) drop(d *oldDoc, reason string, steps ...any) {
	if d.get(steps...) != nil {
		m.note(d, noteDropped, reason, steps...)
	}
}

// finish reports the fields that were not migrated, and sets the remaining fields of the new configuration.
func (m *migrator) finish() {
	for _, name := range slices.Sorted(maps.Keys(m.docs)) {
		d := m.docs[name]
		m.leftovers(d, d.root, nil)
	}
	k := &m.c.Kubernetes.Kubernetes
	q := &QuickStart{ServiceClusterIPRange: k.ServiceClusterIPRange, PodCIDR: k.PodCIDR, Machines: make([]QuickMachine, len(m.c.Layout.MachineList))}
	q.chooseNetworks(&reporter{}, m.c)
	k.ClusterDNS = append([]string{}, k.ClusterDNS...)
	m.c.fillDefaults()
	slices.SortStableFunc(m.notes, func(a, b MigrationNote) int {
		return cmp.Or(cmp.Compare(fileOrder(a.File), fileOrder(b.File)), cmp.Compare(a.Line, b.Line))
	})
}

func fileOrder(name string) int { return slices.Index(append(Files(), oldConfigFile), name) }

// leftovers reports the values that were not migrated, so that no value is lost silently.
func (m *migrator) leftovers(d *oldDoc, v any, p fieldPath) {
	if d.taken[p.String()] {
		return
	}
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			m.leftovers(d, x[key], p.With(key))
		}
	case []any:
		for i, e := range x {
			m.leftovers(d, e, p.With(i))
		}
	case nil:
	default:
		m.note(d, noteDropped, "paictl does not use this field", p...)
	}
}

// sshKey returns a text that is equal for equal SSH settings.
func sshKey(s layout.SSH) string {
	return fmt.Sprintf("%q %q %q %q %d", s.Username, s.Password.Reveal(), s.KeyFile, s.SecretName, s.Port)
}

// hoistSSH moves the most common SSH settings of machines to the layout, so that machines contain only differing settings. It does nothing if a
// machine has no user name or no login, because such a machine would inherit wrong settings.
func hoistSSH(l *layout.Layout, all []layout.SSH) {
	count := map[string]int{}
	best := -1
	for i, s := range all {
		count[sshKey(s)]++
		if best < 0 || count[sshKey(s)] > count[sshKey(all[best])] {
			best = i
		}
	}
	if best < 0 {
		return
	}
	common := all[best]
	for _, s := range all {
		if sshKey(s) == sshKey(common) {
			continue
		}
		noLogin := !s.Password.IsSet() && s.KeyFile == "" && (common.Password.IsSet() || common.KeyFile != "")
		if noLogin || s.Username == "" && common.Username != "" {
			common = layout.SSH{}
			break
		}
	}
	l.SSH = common
	for i, s := range all {
		if sshKey(s) == sshKey(common) {
			continue
		}
		if s.Port == 0 && common.Port != 0 {
			s.Port = 22
		}
		own := s
		if own.Username == common.Username {
			own.Username = ""
		}
		if own.Password == common.Password && own.KeyFile == common.KeyFile {
			own.Password, own.KeyFile, own.SecretName = "", "", ""
		}
		l.MachineList[i].SSH = &own
	}
}
