package phases

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

type containerd struct{ want *engine.Desired }

// Names and paths of containerd.
const (
	PhaseContainerd = "containerd"
	BinDir          = paths.Bin
	cniBinDir       = paths.CNIBin
	containerdUnit  = "/etc/systemd/system/containerd.service"
	ContainerdConf  = "/etc/containerd/config.toml"
	criSocket       = "unix:///run/containerd/containerd.sock"
)

//go:embed files/containerd.service
var containerdService []byte

func (*containerd) Name() string { return PhaseContainerd }
func (*containerd) Traits() engine.Traits {
	return engine.Traits{Upgrade: engine.UpgradePrograms, Repairs: true}
}
func (*containerd) Applies(*engine.Node) bool { return true }

func (p *containerd) Waits(n *engine.Node, pl *engine.Plan) []engine.Step {
	return rollout(pl, n, PhaseContainerd, "containerd.service")
}

// binaries returns the named artifacts that a phase installs into the bin folder, if the node needs them.
func binaries(s *engine.Spec, n *engine.Node, names ...string) ([]engine.Artifact, error) {
	var out []engine.Artifact
	for _, name := range names {
		a, ok := s.Bundle.Lookup(bundle.KindBinary, name)
		if !ok {
			return nil, fmt.Errorf("the bundle in %s has no program %q", s.Bundle.Dir(), name)
		}
		if a.NeededBy(n.ControlPlane, n.Worker) {
			out = append(out, engine.Artifact{Path: path.Join(BinDir, name), Mode: 0o755, Src: a})
		}
	}
	return out, nil
}

func (p *containerd) resources(n *engine.Node) (engine.Resources, error) {
	bins, err := binaries(p.want.Spec, n, "containerd", "containerd-shim-runc-v2", "ctr", "runc")
	if err != nil {
		return engine.Resources{}, err
	}
	for _, a := range p.want.Artifacts(n, bundle.KindCNIPlugin) {
		bins = append(bins, engine.Artifact{Path: path.Join(cniBinDir, a.Name), Mode: 0o755, Src: a})
	}
	conf, err := p.Config()
	if err != nil {
		return engine.Resources{}, err
	}
	return engine.Resources{
		Artifacts: bins,
		Files: []engine.File{
			{Path: ContainerdConf, Mode: 0o644, Body: conf},
			{Path: ContainerdEnv, Mode: 0o600, Body: containerdEnvironment(p.want.Spec), Secret: true},
			{Path: containerdUnit, Mode: 0o644, Body: containerdService},
		},
		Units: []engine.Unit{{Name: "containerd.service", Reads: []string{
			ContainerdConf, ContainerdEnv, containerdUnit, path.Join(BinDir, "containerd"),
		}}},
	}, nil
}

// Config renders config.toml (version 3, for containerd 2.x). The operator's extra settings override paictl's settings.
func (p *containerd) Config() ([]byte, error) {
	pause, err := p.want.Image("pause")
	if err != nil {
		return nil, err
	}
	k := p.want.Config.Kubernetes.Kubernetes
	systemd := k.Extra.Kubelet["cgroupDriver"] != "cgroupfs"
	conf := map[string]any{
		"version": 3,
		"imports": []any{"/etc/containerd/conf.d/*.toml"},
		"plugins": map[string]any{
			"io.containerd.cri.v1.images": map[string]any{
				"pinned_images": map[string]any{"sandbox": ImageRef(p.want.Spec, pause)},
				"registry":      map[string]any{"config_path": "/etc/containerd/certs.d"},
			},
			"io.containerd.cri.v1.runtime": map[string]any{
				"containerd": map[string]any{
					"default_runtime_name": "runc",
					"runtimes": map[string]any{"runc": map[string]any{
						"runtime_type": "io.containerd.runc.v2",
						"options":      map[string]any{"SystemdCgroup": systemd},
					}},
				},
				"cni": map[string]any{"bin_dirs": []any{cniBinDir}, "conf_dir": cniConfDir},
			},
		},
	}
	b, err := toml.Marshal(merge(conf, k.Extra.Containerd))
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", ContainerdConf, err)
	}
	return append([]byte("# Written by paictl; change kubernetes-configuration.yaml (extra.containerd) instead.\n"), b...), nil
}

func (p *containerd) Detect(n *engine.Node) (string, error) {
	res, err := p.resources(n)
	return res.Detect(), err
}

func (p *containerd) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	return res.Diff(w.Of(n, PhaseContainerd)), nil
}

func (p *containerd) Carries(n *engine.Node, _ *engine.World, cs []engine.Change) []bundle.Artifact {
	res, _ := p.resources(n) // Diff has called resources before, without an error
	return engine.Sources(res.Uploads(cs))
}

func (p *containerd) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	if store := CheckedCluster(p.want, nil).Store(); store != paths.Containerd {
		res.Setup += "own_tree " + shell.Quote(store) + "\n"
	}
	// If another containerd ran on the machine, its images are missing in the new store. The phase images detects this, because it queries the running
	// containerd.
	return r.ApplyResources(ctx, n, PhaseContainerd, res, cs)
}

func (*containerd) Verify(*engine.Node) string {
	return `
systemctl is-active --quiet containerd.service || { journalctl -u containerd.service -n 3 --no-pager -o cat >&2; echo "containerd does not run -> see journalctl -u containerd on the host" >&2; exit 1; }
i=0
while ! ctr version >/dev/null 2>&1; do
	i=$((i + 1))
	[ "$i" -lt 30 ] || { echo "containerd does not answer on its socket -> see journalctl -u containerd on the host" >&2; exit 1; }
	sleep 0.2
done
`
}

// merge returns a copy of a in which b's values override a's values. It merges maps key by key. It merges lists of named items (kubeadm's extraArgs
// and extraVolumes) name by name. Other values in b replace the values in a. A nil value in b doesn't remove a value, and an empty list in b
// doesn't remove named items. merge changes neither map.
func merge(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		am, aok := out[k].(map[string]any)
		bm, bok := v.(map[string]any)
		an, bn := namesIn(out[k]), namesIn(v)
		list, isList := v.([]any)
		switch {
		case v == nil || isList && len(list) == 0 && an != nil:
		case aok && bok:
			out[k] = merge(am, bm)
		case an != nil && bn != nil:
			// b's list may contain the same name several times, because some flags can be repeated.
			kept := slices.DeleteFunc(slices.Clone(out[k].([]any)), func(x any) bool {
				return bn[x.(map[string]any)["name"].(string)]
			})
			out[k] = append(kept, v.([]any)...)
		default:
			out[k] = v
		}
	}
	return out
}

// namesIn returns the set of names in a list of named items. It returns nil if v is another kind of value.
func namesIn(v any) map[string]bool {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	out := map[string]bool{}
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, ok := m["name"].(string)
		if !ok {
			return nil
		}
		out[name] = true
	}
	return out
}
