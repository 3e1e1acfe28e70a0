package config

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// LayoutEdit is a change of the layout.yaml in a folder. The result satisfies all rules, but isn't written yet. The rest of the file keeps its order,
// comments and blank lines.
type LayoutEdit struct {
	// Cluster is the whole configuration after the change.
	Cluster *Cluster
	// Machines lists the machines that the change adds or removes.
	Machines []layout.Machine

	fileEdit
	services fileEdit
}

type fileEdit struct {
	path string
	// secret means that only the owner may read the file.
	secret        bool
	before, after []byte
}

// AddMachines adds machines to the layout in a folder. A machine without a host name gets the name that it reports. A machine without a SKU gets
// the SKU of machines with equal hardware, or a new SKU. The keys of facts are addresses. Machines that are already in the layout stay unchanged.
func AddMachines(dir string, machines []layout.Machine, facts map[string]layout.Facts, services ServiceRules) (*LayoutEdit, error) {
	data, c, err := loadForEdit(dir)
	if err != nil {
		return nil, err
	}
	e := &LayoutEdit{fileEdit: fileEdit{path: filepath.Join(dir, LayoutFile), before: data[LayoutFile]}}
	want := c.Layout
	want.MachineList = slices.Clone(c.Layout.MachineList)
	want.MachineSKU = cloneSKUs(c.Layout.MachineSKU)
	for _, m := range machines {
		if m.Hostname == "" {
			m.Hostname = strings.ToLower(facts[m.HostIP].Hostname)
		}
		known, err := inLayout(want.MachineList, m)
		if err != nil {
			return nil, err
		}
		if known {
			continue
		}
		if m.SKU == "" {
			m.SKU = addSKU(want.MachineSKU, facts[m.HostIP])
		}
		want.MachineList = append(want.MachineList, m)
		e.Machines = append(e.Machines, m)
	}
	return e, e.check(data, c, want, services)
}

// inLayout reports whether the list contains the machine. It returns an error if a machine in the list has the same name or the same address, but not
// both.
func inLayout(list []layout.Machine, m layout.Machine) (bool, error) {
	for _, o := range list {
		switch {
		case o.Hostname == m.Hostname && o.HostIP == m.HostIP:
			return true, nil
		case o.Hostname == m.Hostname || o.HostIP == m.HostIP:
			return false, hint.Errorf("give the machine another name (hostnamectl set-hostname, or NAME=ADDRESS), or remove the other one first: paictl node remove "+o.Hostname,
				"%s (%s) cannot be added: the layout has %s (%s)", m.Hostname, m.HostIP, o.Hostname, o.HostIP)
		}
	}
	return false, nil
}

// RemoveMachines removes the machines with the given host names from the layout in a folder. It ignores names that are not in the layout.
func RemoveMachines(dir string, names []string, services ServiceRules) (*LayoutEdit, error) {
	data, c, err := loadForEdit(dir)
	if err != nil {
		return nil, err
	}
	e := &LayoutEdit{fileEdit: fileEdit{path: filepath.Join(dir, LayoutFile), before: data[LayoutFile]}}
	want := c.Layout
	want.MachineList = nil
	for _, m := range c.Layout.MachineList {
		if slices.Contains(names, m.Hostname) {
			e.Machines = append(e.Machines, m)
			continue
		}
		want.MachineList = append(want.MachineList, m)
	}
	return e, e.check(data, c, want, services)
}

// Write replaces the file atomically. Undo restores the previous text.
func (e *fileEdit) Write() error { return e.write(e.after) }

// Undo restores the text that Write has replaced. It does nothing if the file has been changed since.
func (e *fileEdit) Undo() error {
	now, err := os.ReadFile(e.path)
	if err != nil || !bytes.Equal(now, e.after) {
		return err
	}
	return e.write(e.before)
}

func (e *fileEdit) write(b []byte) error {
	if bytes.Equal(e.before, e.after) {
		return nil
	}
	now, err := os.ReadFile(e.path)
	if err != nil {
		return fmt.Errorf("write %s: %w", e.path, err)
	}
	if !bytes.Equal(now, e.before) && !bytes.Equal(now, e.after) {
		return hint.Errorf("run the same command again", "%s was changed by another program in the meantime", e.path)
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(e.path); err == nil && !e.secret {
		mode = info.Mode().Perm()
	}
	f, err := renameio.NewPendingFile(e.path, renameio.WithStaticPermissions(mode))
	if err != nil {
		return fmt.Errorf("write %s: %w", e.path, err)
	}
	defer func() { _ = f.Cleanup() }() // after the rename, Cleanup does nothing
	if _, err := f.Write(b); err != nil {
		return fmt.Errorf("write %s: %w", e.path, err)
	}
	return f.CloseAtomicallyReplace()
}

func loadForEdit(dir string) (map[string][]byte, *Cluster, error) {
	data, err := readFiles(dir)
	if err != nil {
		return nil, nil, err
	}
	c, err := Parse(dir, data)
	return data, c, err
}

// check makes the edit in memory, parses the result, and applies all rules.
func (e *LayoutEdit) check(data map[string][]byte, before *Cluster, want layout.Layout, services ServiceRules) error {
	e.after = e.before
	if len(e.Machines) > 0 {
		var err error
		if e.after, err = editLayout(e.before, want); err != nil {
			return err
		}
	}
	after := maps.Clone(data)
	after[LayoutFile] = e.after
	c, err := Parse(before.Dir, after)
	if err != nil {
		return err
	}
	e.Cluster, e.secret = c, c.HoldsSecret(LayoutFile)
	return e.settle(data, before, services)
}

func cloneSKUs(in map[string]layout.SKU) map[string]layout.SKU {
	out := map[string]layout.SKU{}
	for k, v := range in {
		out[k] = v
	}
	return out
}

// addSKU returns the name of the SKU for a machine with the given facts. If no SKU has the same hardware, it adds a SKU.
func addSKU(skus map[string]layout.SKU, f layout.Facts) string {
	found, _ := layout.SKUs(map[string]layout.Facts{"": f})
	for base, sku := range found {
		for _, name := range sortedKeys(skus) {
			if sameHardware(skus[name], sku) {
				return name
			}
		}
		name := base
		for i := 2; skus[name].OS != "" || skus[name].Mem != ""; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		skus[name] = sku
		return name
	}
	return ""
}

// sameHardware reports whether two SKUs have the same hardware. As in layout.SKUs, memory may differ by 1 % or by 1 GiB.
func sameHardware(a, b layout.SKU) bool {
	am, err1 := resource.ParseQuantity(a.Mem)
	bm, err2 := resource.ParseQuantity(b.Mem)
	if err1 != nil || err2 != nil {
		return false
	}
	less, more := min(am.Value(), bm.Value()), max(am.Value(), bm.Value())
	if more-less > max(more/100, 1<<30) {
		return false
	}
	a.Mem, b.Mem = "", ""
	if a.GPU != nil && b.GPU != nil {
		ag, bg := *a.GPU, *b.GPU
		ag.Driver, bg.Driver = "", ""
		a.GPU, b.GPU = &ag, &bg
	}
	for _, s := range []*layout.SKU{&a, &b} {
		disks := slices.Clone(s.Disks)
		for i := range disks {
			disks[i].Name = ""
		}
		s.Disks = disks
		if len(s.RDMA) == 0 {
			s.RDMA = nil
		}
		if len(s.Disks) == 0 {
			s.Disks = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// editLayout changes the text of a layout so that it contains the machines of another layout. It first tries to edit lines of the text. If the YAML
// style doesn't allow that, it edits and encodes the parsed document. Encoding keeps comments but removes blank lines.
func editLayout(text []byte, want layout.Layout) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if out, err := editText(text, doc.Content[0], want); err == nil && says(out, want) {
		return out, nil
	}
	out, err := editNodes(&doc, want)
	if err == nil && !says(out, want) {
		err = hint.Errorf("edit machine-list by hand, then run: paictl cluster up", "paictl can't edit the YAML style of this %s", LayoutFile)
	}
	return out, err
}

func says(text []byte, want layout.Layout) bool {
	var have layout.Layout
	if _, found := strictyaml.Decode(LayoutFile, text, &have); found.Err() != nil {
		return false
	}
	a, err1 := yaml.Marshal([]any{have.MachineSKU, have.MachineList})
	b, err2 := yaml.Marshal([]any{want.MachineSKU, want.MachineList})
	return err1 == nil && err2 == nil && bytes.Equal(a, b)
}

func editNodes(doc *yaml.Node, want layout.Layout) ([]byte, error) {
	root := doc.Content[0]
	list, skus := valueOf(root, "machine-list"), valueOf(root, "machine-sku")
	if list == nil || skus == nil {
		return nil, fmt.Errorf("%s has no machine-list or no machine-sku", LayoutFile)
	}
	old := map[string]*yaml.Node{}
	for _, item := range list.Content {
		if h := valueOf(item, "hostname"); h != nil {
			old[h.Value] = item
		}
	}
	list.Content, list.Style = nil, 0
	for _, m := range want.MachineList {
		item := old[m.Hostname]
		if item == nil {
			var err error
			if item, err = strictyaml.Node(m); err != nil {
				return nil, err
			}
		}
		list.Content = append(list.Content, item)
	}
	for _, name := range sortedKeys(want.MachineSKU) {
		if valueOf(skus, name) != nil {
			continue
		}
		n, err := strictyaml.Node(map[string]layout.SKU{name: want.MachineSKU[name]})
		if err != nil {
			return nil, err
		}
		skus.Style = 0
		skus.Content = append(skus.Content, n.Content...)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind == yaml.AliasNode {
		mapping = mapping.Alias
	}
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
