package phases

import (
	"slices"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/preflight"
)

// Check returns findings about each node that responded, and findings about all nodes together. It has no side effects. The same input results in the
// same findings in the same order.
func Check(r *engine.Run, w *engine.World, nodes []*engine.Node) []preflight.Finding {
	c := CheckedCluster(r.Want, w.Leader)
	var hosts []*preflight.Host
	findings := slices.Clone(w.Findings)
	for i, n := range r.Spec.Nodes {
		f := w.Facts[n.Hostname]
		if f == nil || r.IsAside(n) {
			continue
		}
		h, broken := preflight.Read(c, c.Nodes[i], f.Sections)
		if broken != nil {
			findings = append(findings, *broken)
			continue
		}
		h.Selected = slices.Contains(nodes, n)
		h.QueriedAt, h.Answered = f.QueriedAt, f.AnsweredAt
		AddPhaseFacts(r.Want, h, n, f.Sections)
		hosts = append(hosts, h)
	}
	findings = append(preflight.Run(c, hosts), findings...)
	c.Sort(findings)
	return findings
}

// CheckedCluster converts the desired state to a preflight.Cluster. The nodes are in the order of d.Nodes.
func CheckedCluster(d *engine.Desired, leader *engine.Node) *preflight.Cluster {
	c := &preflight.Cluster{
		Kubernetes: &d.Config.Kubernetes.Kubernetes, SKUs: d.Config.Layout.MachineSKU, Bundle: d.Bundle,
		Sysctls: (&base{want: d}).resources().Sysctls, Endpoint: d.Endpoint(), Upgrading: d.Upgrading, Back: d.Back,
	}
	for _, n := range d.Nodes {
		node := CheckedNode(n)
		c.Nodes = append(c.Nodes, node)
		if n == leader {
			c.Leader = node
		}
	}
	return c
}

// CheckedNode converts a node to a preflight.Node.
func CheckedNode(n *engine.Node) *preflight.Node {
	return &preflight.Node{Machine: n.Machine, ControlPlane: n.ControlPlane, AddAs: n.AsArgument()}
}

// AddPhaseFacts adds the facts to a host that only the phases can parse: its programs, kernel settings, driver, and the space for its files.
func AddPhaseFacts(d *engine.Desired, h *preflight.Host, n *engine.Node, sections map[string]answer.Answer) {
	for _, row := range sections[PhaseKubelet].All("kubernetes") {
		if len(row) > 1 {
			h.Programs = append(h.Programs, preflight.Program{Name: row[0], Version: row[1]})
		}
	}
	for _, row := range sections[PhaseBase].All("later") {
		if len(row) > 2 {
			h.Later = append(h.Later, preflight.Setting{Name: row[0], Value: row[1], File: row[2]})
		}
	}
	driver := &NvidiaDriver{want: d}
	state := driver.Decide(h.Facts, sections[PhaseDriver])
	if state != nil && driver.Wanted(n) {
		h.Driver = &preflight.Driver{Findings: state.Findings, Installs: len(state.missing()) > 0}
	}
	if d.Bundle != nil {
		h.Needs = brings(d, n, sections, state)
	}
}

// unpacked is the disk space for an image, as a multiple of its archive's size. The space contains the archive during the import, the compressed
// layers in containerd's store, and the unpacked files of the layers. The value results from a measurement of 833 MB for archives of 163 MB.
const unpacked = 5

// filesOfImage is an upper limit for the number of files in an image of the bundle. The largest image contains 913 files. Images of jobs contain more
// files, but they aren't in the bundle.
const filesOfImage = 1000

// brings returns the disk space that the bundle's files will need on a node. It doesn't count files that already exist on the node.
func brings(d *engine.Desired, n *engine.Node, sections map[string]answer.Answer, state *DriverState) []preflight.Space {
	have := installed(sections)
	sum := func(kind string, there func(bundle.Artifact) bool) (bytes, files int64) {
		for _, a := range d.Artifacts(n, kind) {
			if !there(a) {
				bytes, files = bytes+a.Size, files+1
			}
		}
		return bytes, files
	}
	byHash := func(a bundle.Artifact) bool { return have[a.SHA256] }
	imported := sections[PhaseImages]
	unimported, newImages := sum(bundle.KindImage, func(a bundle.Artifact) bool {
		return (&images{want: d}).present(imported, a)
	})
	programs, newPrograms := sum(bundle.KindBinary, byHash)
	plugins, newPlugins := sum(bundle.KindCNIPlugin, byHash)
	var packages int64
	// Ignore the error, because the phase nvidia-driver reports the same error.
	c, _ := (&NvidiaDriver{want: d}).Packages(state)
	for _, a := range c.Artifacts() {
		packages += a.Size
	}
	// Uploads are stored in paictl's folder first, so a program needs twice its size until it is installed.
	return []preflight.Space{
		{Path: BinDir, Bytes: programs, Inodes: newPrograms},
		{Path: cniBinDir, Bytes: plugins, Inodes: newPlugins},
		{Path: engine.StateDir, Bytes: programs + packages, Inodes: newPrograms + newPlugins + int64(len(c.Artifacts())) + 100},
		{Path: CheckedCluster(d, nil).Store(), Bytes: unpacked * unimported, Inodes: filesOfImage * newImages},
	}
}

// installed returns the hashes of the bundle's files that are already installed on a host.
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
