package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// containerd installs the container runtime, the CNI plugins and their configuration.
type containerd struct{ want *desired }

const (
	phaseContainerd = "containerd"
	binDir          = paths.Bin
	cniBinDir       = paths.CNIBin
	containerdUnit  = "/etc/systemd/system/containerd.service"
	containerdConf  = "/etc/containerd/config.toml"
	criSocket       = "unix:///run/containerd/containerd.sock"
)

//go:embed files/containerd.service
var containerdService []byte

func (*containerd) name() string       { return phaseContainerd }
func (*containerd) traits() traits     { return traits{upgrade: upgradePrograms, repairs: true} }
func (*containerd) applies(*Node) bool { return true }

func (p *containerd) waits(n *Node, pl *plan) []step {
	return pl.rollout(n, phaseContainerd, "containerd.service")
}

// binaries returns the artifacts that one phase installs into the bin folder.
func (s *Spec) binaries(n *Node, names ...string) ([]artifact, error) {
	var out []artifact
	for _, name := range names {
		a, ok := s.Bundle.Lookup(bundle.KindBinary, name)
		if !ok {
			return nil, fmt.Errorf("the bundle in %s has no program %q", s.Bundle.Dir(), name)
		}
		if a.NeededBy(n.ControlPlane, n.Worker) {
			out = append(out, artifact{path: path.Join(binDir, name), mode: 0o755, src: a})
		}
	}
	return out, nil
}

func (p *containerd) resources(n *Node) (resources, error) {
	bins, err := p.want.binaries(n, "containerd", "containerd-shim-runc-v2", "ctr", "runc")
	if err != nil {
		return resources{}, err
	}
	for _, a := range p.want.artifacts(n, bundle.KindCNIPlugin) {
		bins = append(bins, artifact{path: path.Join(cniBinDir, a.Name), mode: 0o755, src: a})
	}
	conf, err := p.config()
	if err != nil {
		return resources{}, err
	}
	return resources{
		artifacts: bins,
		files: []file{
			{path: containerdConf, mode: 0o644, body: conf},
			{path: containerdEnv, mode: 0o600, body: p.want.containerdEnvironment(), secret: true},
			{path: containerdUnit, mode: 0o644, body: containerdService},
		},
		units: []unit{{name: "containerd.service", reads: []string{
			containerdConf, containerdEnv, containerdUnit, path.Join(binDir, "containerd"),
		}}},
	}, nil
}

// config renders config.toml (version 3, containerd 2.x), with the operator's extra settings merged over paictl's.
func (p *containerd) config() ([]byte, error) {
	pause, err := p.want.image("pause")
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
				"pinned_images": map[string]any{"sandbox": p.want.imageRef(pause)},
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
		return nil, fmt.Errorf("render %s: %w", containerdConf, err)
	}
	return append([]byte("# Written by paictl; change kubernetes-configuration.yaml (extra.containerd) instead.\n"), b...), nil
}

func (p *containerd) detect(n *Node) (string, error) {
	res, err := p.resources(n)
	return res.detect(), err
}

func (p *containerd) diff(n *Node, w *world) ([]Change, error) {
	res, err := p.resources(n)
	if err != nil {
		return nil, err
	}
	return res.diff(w.of(n, phaseContainerd)), nil
}

func (p *containerd) carries(n *Node, _ *world, cs []Change) []bundle.Artifact {
	res, _ := p.resources(n) // diff has called it before, without an error
	return sources(res.uploads(cs))
}

func (p *containerd) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	if store := p.want.checked(nil).Store(); store != paths.Containerd {
		res.setup += "own_tree " + shell.Quote(store) + "\n"
	}
	// An image that was imported into another containerd's store is missing now. The store itself
	// stays, so only the store's answer counts (phase images).
	return r.applyResources(ctx, n, phaseContainerd, res, cs)
}

func (*containerd) verify(*Node) string {
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

// merge returns a with b's values over it: maps are merged key by key, lists of named items
// (kubeadm's extraArgs and extraVolumes) name by name, and all other values are replaced. A nil
// value and an empty list of named items remove nothing. merge changes neither map.
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
			// A name may occur in b's list more than once: some flags repeat.
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

// namesIn returns the names in a list of named items, or nil if v is another value.
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
