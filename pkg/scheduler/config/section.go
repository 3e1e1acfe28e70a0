package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// services contains two sections of services-configuration.yaml: paictl's section for the scheduler, and OpenPAI's section,
// which contains HiveD's file as text.
type services struct {
	Scheduler section     `yaml:"scheduler"`
	Hived     section     `yaml:"hivedscheduler"`
	Rest      unknownKeys `yaml:",inline"`
}

// section is the part of the section that this package reads. The section may also contain settings of the chart.
type section struct {
	Physical physicalCluster           `yaml:"physicalCluster"`
	Virtual  map[string]virtualCluster `yaml:"virtualClusters"`
	Config   textBlock                 `yaml:"config"`
	Reserve  bool                      `yaml:"reserveGPUMachines"`
	Rest     unknownKeys               `yaml:",inline"`
}

// textBlock is a YAML document inside a string of the file, with the string's position.
type textBlock struct {
	text string
	line int // the number of the text's first line in the file; 0 if the text isn't a block of lines
}

// DecodeNode implements strictyaml.NodeDecoder.
func (b *textBlock) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	d.Value(n, path, &b.text)
	if n.Style&yaml.LiteralStyle != 0 {
		b.line = n.Line + 1
	}
}

// FromCluster creates the configuration from a layout and services-configuration.yaml. The section scheduler may contain
// physicalCluster and virtualClusters, or config, which is HiveD's file as text. If the section contains none of these,
// FromCluster reads OpenPAI's hivedscheduler.config. Without physicalCluster, the layout defines the hardware. Without
// virtualClusters, a virtual cluster called default owns all cells. The findings have positions in servicesFile.
func FromCluster(l layout.Layout, servicesFile string, servicesText []byte) (cell.Config, strictyaml.Findings) {
	var s services
	doc, findings := strictyaml.Parse(servicesFile, servicesText)
	if isEmptyFile(findings) {
		findings = nil
	}
	if len(findings) == 0 {
		findings = doc.Decode(&s)
	}
	if len(findings) > 0 {
		return cell.Config{}, findings
	}
	r := reader{doc: doc, base: strictyaml.Path{"scheduler"}}
	own, hived := &s.Scheduler, s.Hived.Config
	ownSays := own.Config.says() || len(own.Virtual) > 0 || !own.Physical.empty()
	switch {
	case ownSays && hived.says():
		r.base = strictyaml.Path{"hivedscheduler"}
		r.add(strictyaml.Warning, strictyaml.Path{"config"}, "scheduler/two-sections", "it has no effect, because the section scheduler defines how the hardware is divided", "remove one of the two")
		r.base = strictyaml.Path{"scheduler"}
	case hived.says():
		r.base = strictyaml.Path{"hivedscheduler"}
		own.Config = hived
	}
	var c cell.Config
	if own.Config.says() {
		c = r.fromText(l, servicesText, own)
	} else {
		r.warnUnknown(reflect.ValueOf(own.Physical), strictyaml.Path{"physicalCluster"})
		r.warnUnknown(reflect.ValueOf(own.Virtual), strictyaml.Path{"virtualClusters"})
		c = r.complete(l, own.Physical, own.Virtual)
	}
	c.ReserveGPUMachines = c.ReserveGPUMachines || own.Reserve
	return c, r.findings
}

func isEmptyFile(findings strictyaml.Findings) bool {
	return len(findings) == 1 && findings[0].Rule == "yaml/empty"
}

// says reports whether the block contains a text. Like OpenPAI, it treats a single character as empty.
func (b textBlock) says() bool { return len(strings.TrimSpace(b.text)) > 1 }

func (p physicalCluster) empty() bool { return len(p.Types) == 0 && len(p.Cells) == 0 }

// complete adds the missing parts of a configuration and checks the result.
func (r *reader) complete(l layout.Layout, p physicalCluster, vcs map[string]virtualCluster) cell.Config {
	c := r.config(p, vcs)
	made := p.empty()
	if made {
		h := hardware(l)
		c.Types, c.Physical, c.Processors = h.Types, h.Physical, h.Processors
		r.warnLayout(l, c)
	} else {
		r.warnUnknownNodes(l, c)
		r.checkGPUsForPods(l, c)
	}
	if len(vcs) == 0 {
		c.VirtualClusters = ownEverything(c)
	}
	r.check(c)
	return c
}

// warnLayout warns about unexpected effects of a layout on the scheduler.
func (r *reader) warnLayout(l layout.Layout, c cell.Config) {
	if len(c.Physical) == 0 {
		r.add(strictyaml.Warning, nil, "scheduler/no-gpu", "no machine of the layout has GPUs, or is a worker whose processors are known", "")
	}
	for sku := range l.MachineSKU {
		racks, loose := machinesOf(l, sku)
		sizes := map[int]bool{}
		for _, one := range racks {
			sizes[len(one.nodes)] = true
		}
		if len(loose) > 0 {
			sizes[0] = true
		}
		if _, leaves := leavesOf(l, sku); leaves > 0 && len(sizes) > 1 {
			r.add(strictyaml.Warning, nil, "scheduler/racks",
				fmt.Sprintf("the racks of %s have different numbers of machines, and a job never uses racks of two sizes", sku),
				"write physicalCluster yourself, or remove the label rack from its machines, if jobs larger than a rack matter more than racks")
		}
	}
	slices.SortFunc(r.findings, func(a, b strictyaml.Finding) int { return strings.Compare(a.Message, b.Message) })
}

// warnUnknownNodes warns about handwritten nodes that the layout doesn't contain.
func (r *reader) warnUnknownNodes(l layout.Layout, c cell.Config) {
	const shown = 5
	cells, err := c.Expand()
	if err != nil || len(l.MachineList) == 0 {
		return
	}
	known, isNode := map[string]bool{}, map[string]bool{}
	for _, m := range l.MachineList {
		known[m.Hostname] = true
	}
	for _, t := range c.Types {
		isNode[t.Name] = t.Node
	}
	var missing []string
	var walk func(cells []cell.Expanded)
	walk = func(cells []cell.Expanded) {
		for i := range cells {
			e := &cells[i]
			if !isNode[e.Type] {
				walk(e.Children)
			} else if !known[e.Address] {
				known[e.Address] = true
				missing = append(missing, e.Address)
			}
		}
	}
	walk(cells)
	if n := len(missing); n > 0 {
		names := strings.Join(missing[:min(n, shown)], ", ")
		if n > shown {
			names += " and " + plural.Of(n-shown, "other")
		}
		r.add(strictyaml.Warning, strictyaml.Path{"physicalCluster", "physicalCells"}, "scheduler/unknown-node",
			fmt.Sprintf("the layout has no machine %s; its cells are bad until the node joins", names), "correct cellAddress, or add the machine")
	}
}

// fromText reads HiveD's file from a string in the section. It converts positions in the string to positions in the file.
func (r *reader) fromText(l layout.Layout, file []byte, s *section) cell.Config {
	base, block := r.base.With("config"), s.Config
	if !s.Physical.empty() || len(s.Virtual) > 0 {
		r.add(strictyaml.Error, strictyaml.Path{"config"}, "scheduler/two-divisions", "the section has both config and physicalCluster or virtualClusters", "keep one of the two")
		return cell.Config{}
	}
	line, column, _ := r.doc.Position(base)
	var f fileFormat
	doc, found := strictyaml.Decode(r.doc.File, []byte(block.text), &f)
	inner := reader{doc: doc}
	var c cell.Config
	if len(found) == 0 {
		inner.warnUnknown(reflect.ValueOf(f), nil)
		c = inner.complete(l, f.Physical, f.Virtual)
		c.ReserveGPUMachines = f.Reserve
		found = inner.findings
	}
	lines := strings.Split(string(file), "\n")
	for _, one := range found {
		if block.line > 0 && one.Line > 0 {
			one.Line += block.line - 1
			if one.Line <= len(lines) {
				one.Column += indentOf(lines[one.Line-1]) - indentOf(lineOf(block.text, one.Line-block.line))
			}
		} else {
			one.Line, one.Column = line, column
		}
		one.Field = strings.TrimSuffix(base.String()+"."+one.Field, ".")
		r.findings = append(r.findings, one)
	}
	r.findings.Sort()
	return c
}

func lineOf(text string, i int) string {
	lines := strings.Split(text, "\n")
	if i < 0 || i >= len(lines) {
		return ""
	}
	return lines[i]
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
