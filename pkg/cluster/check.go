package cluster

import (
	"slices"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/preflight"
)

// check checks the nodes that answered, each by itself and all together. It is pure: the same
// answers give the same findings in the same order.
func (r *run) check(w *world, nodes []*Node) []preflight.Finding {
	c := r.want.checked(w.leader)
	var hosts []*preflight.Host
	findings := slices.Clone(w.findings)
	for i, n := range r.spec.Nodes {
		f := w.facts[n.Hostname]
		if f == nil || r.isAside(n) {
			continue
		}
		h, broken := preflight.Read(c, c.Nodes[i], f.sections)
		if broken != nil {
			findings = append(findings, *broken)
			continue
		}
		h.Selected = slices.Contains(nodes, n)
		h.Asked, h.Answered = f.asked, f.answered
		r.want.phasesTell(h, n, f.sections)
		hosts = append(hosts, h)
	}
	findings = append(preflight.Run(c, hosts), findings...)
	c.Sort(findings)
	return findings
}

// checked returns the cluster in the form for the checks, with its nodes in the order of s.Nodes.
func (d *desired) checked(leader *Node) *preflight.Cluster {
	c := &preflight.Cluster{
		Kubernetes: &d.Config.Kubernetes.Kubernetes, SKUs: d.Config.Layout.MachineSKU, Bundle: d.Bundle,
		Sysctls: (&base{want: d}).resources().sysctls, Endpoint: d.endpoint(), Upgrading: d.upgrading, Back: d.back,
	}
	for _, n := range d.Nodes {
		node := n.checked()
		c.Nodes = append(c.Nodes, node)
		if n == leader {
			c.Leader = node
		}
	}
	return c
}

func (n *Node) checked() *preflight.Node {
	return &preflight.Node{Machine: n.Machine, ControlPlane: n.ControlPlane, AddAs: n.asArgument()}
}

// phasesTell adds the facts to a host that only the phases can read from their answers.
func (d *desired) phasesTell(h *preflight.Host, n *Node, sections map[string]answer.Answer) {
	for _, row := range sections[phaseKubelet].All("kubernetes") {
		if len(row) > 1 {
			h.Programs = append(h.Programs, preflight.Program{Name: row[0], Version: row[1]})
		}
	}
	for _, row := range sections[phaseBase].All("later") {
		if len(row) > 2 {
			h.Later = append(h.Later, preflight.Setting{Name: row[0], Value: row[1], File: row[2]})
		}
	}
	driver := &nvidiaDriver{want: d}
	state := driver.look(h.Facts, sections[phaseDriver])
	if state != nil && driver.wanted(n) {
		h.Driver = &preflight.Driver{Findings: state.findings, Installs: len(state.missing()) > 0}
	}
	if d.Bundle != nil {
		h.Brings = d.brings(n, sections, state)
	}
}

// unpacked is how much an image takes, in multiples of its archive, whose layers are
// compressed to about a third: the archive while it is imported, the layers in
// containerd's store, and their files. Measured: 833 MB for archives of 163.
const unpacked = 5

// filesOfImage limits how many files an image of the bundle has: the largest has 913, most have fewer than 20. Images of jobs, which are pulled
// later, have tens of thousands.
const filesOfImage = 1000

// brings returns the room that the bundle's files will take on a node. It doesn't count files that are already present.
func (d *desired) brings(n *Node, sections map[string]answer.Answer, state *driverState) []preflight.Room {
	have := installed(sections)
	sum := func(kind string, there func(bundle.Artifact) bool) (bytes, files int64) {
		for _, a := range d.artifacts(n, kind) {
			if !there(a) {
				bytes, files = bytes+a.Size, files+1
			}
		}
		return bytes, files
	}
	byHash := func(a bundle.Artifact) bool { return have[a.SHA256] }
	imported := sections[phaseImages]
	unimported, newImages := sum(bundle.KindImage, func(a bundle.Artifact) bool {
		return (&images{want: d}).present(imported, a)
	})
	programs, newPrograms := sum(bundle.KindBinary, byHash)
	plugins, newPlugins := sum(bundle.KindCNIPlugin, byHash)
	var packages int64
	// Errors in this state are reported by the phase that uses it.
	c, _ := (&nvidiaDriver{want: d}).brings(state)
	for _, a := range c.Artifacts() {
		packages += a.Size
	}
	// Uploads wait in paictl's folder; a program exists twice until it is moved.
	return []preflight.Room{
		{Path: binDir, Bytes: programs, Inodes: newPrograms},
		{Path: cniBinDir, Bytes: plugins, Inodes: newPlugins},
		{Path: stateDir, Bytes: programs + packages, Inodes: newPrograms + newPlugins + int64(len(c.Artifacts())) + 100},
		{Path: d.checked(nil).Store(), Bytes: unpacked * unimported, Inodes: filesOfImage * newImages},
	}
}

// installed returns the hashes of the bundle's files that detection found on a host.
func installed(sections map[string]answer.Answer) map[string]bool {
	out := map[string]bool{}
	for _, a := range sections {
		for _, row := range a.All("art") {
			if len(row) == 3 {
				out[row[2]] = true
			}
		}
	}
	return out
}
