package config

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// oldScheduler is OpenPAI's section for HiveD. Its key config contains HiveD's configuration file as text.
const oldScheduler = "hivedscheduler"

// newScheduler is the section for virtual clusters and hardware in paictl's configuration.
const newScheduler = "scheduler"

// scheduler converts HiveD's file from text to settings, so that virtual clusters can be changed one by one.
func (m *migrator) scheduler() {
	d := m.docs[ServicesFile]
	section, ok := d.get(oldScheduler).(map[string]any)
	if !ok {
		m.drop(d, "expected a map of settings", oldScheduler)
		return
	}
	for _, key := range d.keys(oldScheduler) {
		if key != "config" {
			m.drop(d, "the scheduler no longer has this setting; the end of the new file documents what it has", oldScheduler, key)
		}
	}
	text, isText := section["config"].(string)
	if section["config"] == nil {
		return
	}
	// OpenPAI ignored a text of at most one character.
	if !isText || len(strings.TrimSpace(text)) <= 1 {
		m.drop(d, "it has no content: the hardware is that of the layout", oldScheduler, "config")
		return
	}
	file := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		m.drop(d, "it is not readable as YAML; rewrite physicalCluster and virtualClusters, or leave the hardware to the layout", oldScheduler, "config")
		return
	}
	if m.divides(d) {
		m.drop(d, "the section scheduler defines how the hardware is divided, and is used instead", oldScheduler, "config")
		return
	}
	out := map[string]any{}
	h := &hivedFile{}
	for _, key := range []string{"physicalCluster", "virtualClusters"} {
		if v := h.keep(hivedKeys()[key], file[key], key); v != nil {
			out[key] = v
		}
		delete(file, key)
	}
	for key := range file {
		h.dropped = append(h.dropped, key)
	}
	reason := "physicalCluster and virtualClusters are now in the section scheduler"
	if len(h.dropped) > 0 {
		slices.Sort(h.dropped)
		reason += "; dropped, because HiveD did not use it or the scheduler doesn't: " + strings.Join(h.dropped, ", ")
	}
	m.sections()[newScheduler] = out
	m.note(d, noteChanged, reason, oldScheduler, "config")
}

// divides reports whether the old file already contains a section scheduler that assigns the hardware. OpenPAI's section then has no effect.
func (m *migrator) divides(d *oldDoc) bool {
	for _, key := range []string{"config", "physicalCluster", "virtualClusters"} {
		switch v := d.get(newScheduler, key).(type) {
		case map[string]any:
			if len(v) > 0 {
				return true
			}
		case string:
			if len(strings.TrimSpace(v)) > 1 {
				return true
			}
		}
	}
	return false
}

// keys maps the allowed keys of a map to the allowed keys of their values. The key "*" matches any key. nil keeps the whole value.
type keys map[string]keys

// hivedKeys returns the keys of HiveD's file that have an effect.
func hivedKeys() keys {
	cell := keys{"cellType": nil, "cellAddress": nil, "pinnedCellId": nil}
	cell["cellChildren"] = cell
	return keys{
		"physicalCluster": {
			"cellTypes":     {"*": {"childCellType": nil, "childCellNumber": nil, "isNodeLevel": nil}},
			"physicalCells": cell,
			"skuTypes":      nil,
		},
		"virtualClusters": {"*": {"virtualCells": {"cellType": nil, "cellNumber": nil}, "pinnedCells": {"pinnedCellId": nil}}},
	}
}

type hivedFile struct{ dropped []string }

// keep returns the parts of a value that have an effect. It also filters the items of lists.
func (h *hivedFile) keep(allowed keys, v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		if allowed == nil {
			return v
		}
		out := map[string]any{}
		for _, key := range sortedKeys(v) {
			below, ok := allowed[key]
			if each, free := allowed["*"]; free {
				below, ok = each, true
			}
			if !ok {
				h.dropped = append(h.dropped, path+"."+key)
				continue
			}
			if kept := h.keep(below, v[key], path+"."+key); kept != nil {
				out[key] = kept
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, e := range v {
			if kept := h.keep(allowed, e, fmt.Sprintf("%s[%d]", path, i)); kept != nil {
				out = append(out, kept)
			}
		}
		return out
	}
	return v
}
